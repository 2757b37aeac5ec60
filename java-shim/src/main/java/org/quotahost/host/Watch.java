package org.quotahost.host;

import static org.quotahost.table.QuotaTable.BEAT_MS;

import java.util.concurrent.TimeUnit;
import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;
import org.quotahost.internals.BrokerLog;
import org.quotahost.internals.Internals;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.LineLimit;
import org.quotahost.util.Schedule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All that must go on while Python hangs. Each is a turn of its own, so that a defect in one leaves the others as they are.
 */
final class Watch {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    /** NTP moves the clock by less. */
    private static final long CLOCK_SLACK_MS = 5_000;

    private final QuotaTable table;
    private final long startedAt = System.nanoTime();
    private final LineLimit fullLines = new LineLimit(1);
    private long unadmittedBefore;
    /** By how much the wall clock was ahead of the monotonic one when it was looked at last. */
    private long wallClockAhead = Long.MIN_VALUE + CLOCK_SLACK_MS;

    private Watch(QuotaTable table) {
        this.table = table;
    }

    static void start(Schedule schedule, Lease lease, QuotaTable table, Runnable showNews) {
        Watch watch = new Watch(table);
        schedule.every(Lease.CHECK_MS, "the check of the lease", lease::check);
        schedule.every(BEAT_MS, "the table's clock and the move of the limits",
                () -> table.beat(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - watch.startedAt)));
        schedule.every(1_000, "the look at the wall clock", watch::lookAtWallClock);
        schedule.every(BEAT_MS, "the eviction of silent clients", table::evict);
        schedule.every(BEAT_MS, "the log of a full table", watch::logFull);
        schedule.every(BEAT_MS, "the summary of changed limits", () -> BrokerLog.OF_BROKER.summarize(table.factorInForce::limitFactor));
        schedule.every(BEAT_MS, "the log of refused creations", Fence::logRefusals);
        schedule.every(1_000, "forgetting who was turned back", () -> TurnedBack.forgetOld(System.nanoTime()));
        schedule.every(BEAT_MS, "the log of what is missing", Internals::log);
        schedule.every(BEAT_MS, "the look for new gauges", showNews);
    }

    /** Kafka drops unused sensors by the wall clock, and the table forgets clients by a monotonic one. */
    private void lookAtWallClock() {
        long ahead = System.currentTimeMillis() - TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
        if (ahead < wallClockAhead - CLOCK_SLACK_MS) table.clockWentBack();
        wallClockAhead = ahead;
    }

    private void logFull() {
        long unadmitted = table.unadmitted.sum();
        if (unadmitted != unadmittedBefore && fullLines.pass() != LineLimit.NO) {
            LOG.warn("The quota table is full ({}clients.max={}), or one principal has as many clients as are left for others:"
                    + " further ones share a newcomers' limit until some have been silent for clients.idle",
                    BrokerConfigs.PREFIX, table.clientsMax());
        }
        unadmittedBefore = unadmitted;
    }
}
