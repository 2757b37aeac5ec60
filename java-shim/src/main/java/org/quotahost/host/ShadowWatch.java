package org.quotahost.host;

import java.util.concurrent.TimeUnit;
import org.quotahost.table.Shadows;
import org.quotahost.util.Schedule;

/** The thread that measures who would be held back by rules in shadow, without Python and not on a request thread. */
final class ShadowWatch {
    private static final long EVERY_MS = 1_000;
    /** With so many clients that a look takes long, the pause is this many times as long: a tenth of a core at most. */
    private static final long PAUSE_PER_LOOK = 9;

    private final Shadows shadows;
    private final Schedule schedule = new Schedule("quotahost-shadow");

    ShadowWatch(Shadows shadows) {
        this.shadows = shadows;
    }

    void start() {
        schedule.add("the comparison of rules in shadow", EVERY_MS, () -> look(shadows));
    }

    void end() {
        schedule.end();
    }

    /** Answers how long to wait until the next look, in ms. */
    private static long look(Shadows shadows) {
        long before = System.nanoTime();
        shadows.look(before);
        long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - before);
        return Math.max(EVERY_MS - tookMs, PAUSE_PER_LOOK * tookMs);
    }
}
