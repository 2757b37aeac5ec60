package org.quotahost.fence;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * How many bytes a client may send on in requests that are turned back, before its connections are muted.
 *
 * <p>A producer that waits before it tries again, as Kafka's own do (retry.backoff.ms, 0.1 to 1 s), stays within it
 * and is not muted; one that doesn't has used it up at once. No request takes more than a second of it, however
 * large: a mute lets one request a second through, too. Each slot holds until when its bytes are paid for (the
 * generic cell rate algorithm). Clients share a slot if their keys have one hash: then the one may be muted for what
 * the other sends, for one window at a time.
 */
final class Allowance {
    /** What a client may save up, in seconds of its rate. */
    static final long SAVED_SECONDS = 4;
    private static final long SECOND = 1_000_000_000L;
    private static final long SAVED_NANOS = SAVED_SECONDS * SECOND;
    private static final int SLOTS = 4_096;

    private final AtomicLongArray paidUntil = new AtomicLongArray(SLOTS);
    private final long origin;

    /** All times are after the origin, both by System.nanoTime. */
    Allowance(long origin) {
        this.origin = origin;
    }

    /**
     * Takes so many bytes, if they are still allowed.
     *
     * @param key the hash of whose bytes they are
     * @param bytesPerSecond what is allowed; for 0 nothing is
     * @param nanos now, by System.nanoTime
     */
    boolean take(int key, long bytes, double bytesPerSecond, long nanos) {
        if (!(bytesPerSecond > 0)) return false;
        int slot = (key ^ key >>> 12 ^ key >>> 24) & SLOTS - 1;
        long now = nanos - origin;
        long cost = (long) Math.min(SECOND, bytes / bytesPerSecond * SECOND);
        while (true) {
            long before = paidUntil.get(slot);
            long after = Math.max(before, now) + cost;
            if (after - now > SAVED_NANOS) return false;
            if (paidUntil.compareAndSet(slot, before, after)) return true;
        }
    }
}
