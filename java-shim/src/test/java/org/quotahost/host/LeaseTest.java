package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** When the fallback comes into force, and when it ends. */
class LeaseTest {
    private long now = 1_000;
    private final List<Double> applied = new ArrayList<>();
    private final Lease lease = new Lease(() -> now, applied::add);

    private void after(long ms) {
        now += ms * 1_000_000;
        lease.check();
    }

    @ParameterizedTest
    @CsvSource({"PAUSE,0.0", "OPEN,1.0"})
    void theFallbackIsInForceWithinValidityAndEndsWhenTheHostAnswers(String action, double factor) {
        lease.configure(10_000, action);
        after(5_000);
        assertEquals(List.of(), applied);
        after(5_000 - lease.checkEveryMs());
        assertEquals(List.of(factor), applied, "not later than validity, by the next check");
        after(60_000);
        assertEquals(1, lease.applied(), "counted once");

        lease.renew();
        after(1);
        assertEquals(Arrays.asList(factor, null), applied);
    }

    @Test
    void aRenewedLeaseNeverEnds() {
        lease.configure(1_000, "PAUSE");
        for (int i = 0; i < 100; i++) {
            lease.renew();
            after(500);
        }
        assertEquals(List.of(), applied);
        assertTrue(lease.ageSeconds() <= 0.5);
    }

    /** The host hands over its settings while the watch finds the host alive again. */
    @Test
    void aChangeOfTheSettingsNeverBringsAFallbackBackThatHasEnded() throws Exception {
        var last = new AtomicReference<Double>();
        var configures = new CountDownLatch(2);
        var goesOn = new CountDownLatch(1);
        Lease raced = new Lease(() -> now, factor -> {
            if (factor != null) configures.countDown();
            if (factor != null && configures.getCount() == 0) await(goesOn);
            last.set(factor);
        });
        raced.configure(1_000, "PAUSE");
        now += 5_000_000_000L;
        raced.check(); // the fallback is in force
        raced.renew();

        Thread host = new Thread(() -> raced.configure(1_000, "PAUSE"));
        host.start();
        await(configures);
        Thread watch = new Thread(raced::check);
        watch.start();
        while (watch.isAlive() && watch.getState() != Thread.State.BLOCKED) Thread.onSpinWait();
        goesOn.countDown();
        host.join();
        watch.join();

        assertFalse(raced.expired());
        assertNull(last.get());
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
