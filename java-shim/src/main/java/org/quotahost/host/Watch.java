package org.quotahost.host;

import java.util.concurrent.TimeUnit;
import org.quotahost.fence.Creation;
import org.quotahost.internals.BrokerLog;
import org.quotahost.internals.Internals;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.LineLimit;
import org.quotahost.util.PeriodicThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread for all that must go on while Python hangs: the lease, the table's clock, the limits on their way to the
 * factor in force, forgetting silent clients, and the log's lines about changed limits and refused creations.
 */
final class Watch {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");

    private final Lease lease;
    private final QuotaTable table;
    private final Runnable showNews;
    private volatile PeriodicThread thread;
    private final long startedAt = System.nanoTime();
    private long tickedAt = startedAt;
    private final LineLimit fullLines = new LineLimit(1);
    private boolean wasFull;

    /** Each time the thread looks, it also runs {@code showNews}. */
    Watch(Lease lease, QuotaTable table, Runnable showNews) {
        this.lease = lease;
        this.table = table;
        this.showNews = showNews;
    }

    /** Starts the thread; only after the lease is configured, since that decides how often it is checked. */
    void start() {
        lease.renew(); // the start may have taken longer than validity
        thread = new PeriodicThread("quotahost-watch", everyMs(), this::check, () -> {});
        thread.start();
    }

    void close() {
        if (thread != null) thread.close();
    }

    /** Answers how long to wait until the next time, in ms. */
    private long check() {
        table.beat(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedAt));
        lease.check();
        table.factorInForce().move();
        long eighth = TimeUnit.SECONDS.toNanos(table.idleSeconds()) / QuotaTable.TICKS_PER_IDLE;
        if (System.nanoTime() - tickedAt >= eighth) {
            tickedAt = System.nanoTime();
            table.tick();
        }
        warnWhenFull();
        BrokerLog.summarize(table.factorInForce()::limitFactor);
        Creation.log();
        Internals.log();
        showNews.run();
        return everyMs();
    }

    private long everyMs() {
        return Math.min(QuotaTable.BEAT_MS, lease.checkEveryMs());
    }

    private void warnWhenFull() {
        boolean full = table.isFull();
        if (full && !wasFull && fullLines.pass() != LineLimit.NO) {
            LOG.warn("The quota table is full ({}clients.max={}): further clients share the newcomers' limit until"
                    + " others have been silent for clients.idle", BrokerConfigs.PREFIX, table.clientsMax());
        }
        wasFull = full;
    }
}
