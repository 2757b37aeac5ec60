package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.quotahost.util.LogCapture;

/** Tests when the fallback comes into force and ends, what the log says about it, and all values of validity. */
class LeaseTest {
    private long now = 1_000;
    private final List<Double> applied = new ArrayList<>();
    private final Lease lease = new Lease(() -> now, applied::add);

    private void pass(long ms) {
        for (long at = 0; at < ms; at += Lease.CHECK_MS) {
            now += Lease.CHECK_MS * 1_000_000;
            lease.check();
            lease.log();
        }
    }

    @Test
    void aBrokerThatIsStoppedInTheMidstOfALookHasSeenNoSilence() {
        Iterator<Long> seconds = List.of(0L, 0L, 1L, 60L).iterator(); // the process is stopped between the last two
        Lease stopped = new Lease(() -> seconds.next() * 1_000_000_000, applied::add);
        stopped.configure(10_000, "PAUSE");

        stopped.check();

        assertEquals(List.of(), applied);
    }

    @Test
    void aShorterValidityBeginsWhenItIsConfigured() {
        lease.configure(60_000, "PAUSE");
        pass(9_000);
        lease.configure(5_000, "PAUSE");

        lease.check();

        assertEquals(List.of(), applied);
        pass(5_000);
        lease.configure(5_000, "PAUSE");
        lease.check();
        assertEquals(List.of(0.0), applied, "a host that starts again configures before it has a factor");
    }

    @Test
    void eachSilenceAndEachRecoveryIsLoggedOnce() {
        lease.configure(10_000, "PAUSE");

        String log = LogCapture.during(() -> {
            for (int silence = 0; silence < 2; silence++) {
                pass(60_000);
                lease.renew();
                pass(1_000);
            }
        });

        assertEquals(2, LogCapture.lines(log, "ERROR"), log);
        assertEquals(2, LogCapture.lines(log, "The Python host answers again"), log);
        assertTrue(log.contains("fallback.action=PAUSE") && log.contains("validity 10000 ms"), log);
        assertEquals(2, lease.applied);
        assertFalse(lease.expired);
    }

    @Test
    void aTimeInWhichThisProcessWasStoppedIsNoSilenceAndEndsNone() {
        lease.configure(10_000, "PAUSE");
        pass(9_000);
        now += 60_000_000_000L;
        pass(9_000);
        assertEquals(List.of(), applied);

        pass(1_000);
        now += 60_000_000_000L;
        pass(1_000);
        assertEquals(List.of(0.0), applied, "it is silent still");
    }

    @Test
    void aSilenceIsToldBesideTheCauseBeforeItLeadsToTheFallback() {
        lease.configure(10_000, "PAUSE");
        pass(2_000);
        assertEquals("a full disk", lease.cause("a full disk"));
        pass(3_000);
        String then = "The Python host has been silent for 5000 ms (validity 10000 ms): then fallback.action=PAUSE holds until it answers again";
        assertEquals("a full disk; " + then, lease.cause("a full disk"));
        assertEquals(then, lease.cause(""));
        pass(6_000);
        assertEquals(then.replace("5000", "11000").replace("then ", ""), lease.cause("a full disk"));
        lease.renew();
        pass(50);
        assertEquals("", lease.cause(""));
    }

    @Property
    void theFallbackIsInForceBeforeValidityIsOver(@ForAll @IntRange(min = 100, max = 600_000) int validityMs) {
        List<Double> factors = new ArrayList<>();
        long[] clock = {Long.MAX_VALUE - 1_000_000}; // nanoTime may wrap
        Lease any = new Lease(() -> clock[0], factors::add);
        any.configure(validityMs, "PAUSE");
        long passed = 0;
        while (factors.isEmpty()) {
            passed += Lease.CHECK_MS;
            clock[0] += Lease.CHECK_MS * 1_000_000;
            any.check();
        }
        assertTrue(passed <= validityMs, "validity " + validityMs);
        assertTrue(passed >= validityMs - 2 * Lease.CHECK_MS, "not much too early");
    }
}
