package org.quotahost.table;

/**
 * For how many ms' worth of its limit a pair of tags may have something in Kafka's windows: as long as somebody has had it,
 * at most as far as Kafka looks back. Its limit is the share Tap.rise of that.
 *
 * <p>A marked client has the twin, then its scope's own tags, then the twin again. Kafka measures both apart. While it is
 * away from one, the windows of that one empty, and with its whole limit it could send once more what it has sent by the
 * other one meanwhile. Under the table's lock.
 */
final class Filling {
    /**
     * How far back Kafka looks.
     *
     * @param ms at most
     * @param least the part that is left at least until then: a client may have sent all of it just before it left, and
     *     a lower limit would mute it for longer than max.mute (Tap)
     */
    record Back(long ms, double least) {}

    /** The time from which on somebody has had the tags, monotonic in ms; later by what their windows have lost. */
    private long beganMs;
    /** When somebody came back to them last. */
    private long backAtMs;
    private long lastMs;
    private boolean left;
    private long leftAtMs;
    private int leftAtBeat;

    Filling(long beganMs) {
        this.beganMs = backAtMs = beganMs;
    }

    /** Nobody may have the tags from now on. */
    void leave(long nowMs, int beat) {
        if (left) return;
        left = true;
        leftAtMs = nowMs;
        leftAtBeat = beat;
    }

    /** Whether somebody has had the tags after they were left. */
    boolean isBack(int seenBeat) {
        return left && seenBeat - leftAtBeat > 0;
    }

    /** Somebody has come back to the tags, by the limit that they had then: a lower one now would mute it. */
    void comeBack(long nowMs) {
        beganMs = nowMs - lastMs;
        backAtMs = nowMs;
        left = false;
    }

    /** Somebody comes back to the tags, which were last had so many ms ago, or when somebody came back to them. */
    void away(long unseenMs, long nowMs, Back back) {
        left = true;
        leftAtMs = Math.max(nowMs - unseenMs, backAtMs);
        forMs(nowMs, back);
        comeBack(nowMs);
    }

    /** For how long, and not more than Kafka looks back. */
    long forMs(long nowMs, Back back) {
        lastMs = left ? leftOver(nowMs - leftAtMs, back) : Math.min(nowMs - beganMs, back.ms);
        return lastMs;
    }

    private long leftOver(long awayMs, Back back) {
        long had = Math.min(leftAtMs - beganMs, back.ms);
        return awayMs >= back.ms ? 0 : Math.max(Math.min(had, back.ms - awayMs), (long) (had * back.least));
    }
}
