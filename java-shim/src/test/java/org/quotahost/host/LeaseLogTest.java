package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.quotahost.util.LogCapture;

/** The log lines about a silent host, and the lease's arithmetic for any validity. */
class LeaseLogTest {
    private long now;
    private final List<Double> applied = new ArrayList<>();
    private final Lease lease = new Lease(() -> now, applied::add);

    private void pass(long ms) {
        for (long at = 0; at < ms; at += lease.checkEveryMs()) {
            now += lease.checkEveryMs() * 1_000_000;
            lease.check();
        }
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
        assertEquals(2, lease.applied());
        assertFalse(lease.expired());
    }

    @Test
    void anotherActionComesIntoForceAtOnceWhileTheHostIsSilent() {
        lease.configure(1_000, "PAUSE");
        pass(5_000);

        lease.configure(1_000, "OPEN");

        assertEquals(List.of(0.0, 1.0), applied);
        assertEquals(1, lease.applied());
    }

    @Property
    void theFallbackIsInForceBeforeValidityIsOver(@ForAll @IntRange(min = 100, max = 600_000) int validityMs) {
        List<Double> factors = new ArrayList<>();
        long[] clock = {Long.MAX_VALUE - 1_000_000}; // nanoTime may wrap
        Lease any = new Lease(() -> clock[0], factors::add);
        any.configure(validityMs, "PAUSE");
        long passed = 0;
        while (factors.isEmpty()) {
            passed += any.checkEveryMs();
            clock[0] += any.checkEveryMs() * 1_000_000;
            any.check();
        }
        assertTrue(passed <= validityMs, "validity " + validityMs);
        assertTrue(passed >= validityMs - 2 * any.checkEveryMs(), "not much too early");
    }
}
