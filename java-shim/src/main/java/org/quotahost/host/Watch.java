package org.quotahost.host;

import java.util.concurrent.TimeUnit;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.PeriodicThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The thread that looks after what must happen without Python: the lease, the table's clock, and forgetting silent clients. */
final class Watch {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");

    private final Lease lease;
    private final QuotaTable table;
    private volatile PeriodicThread thread;
    private final long startedAt = System.nanoTime();
    private long tickedAt = startedAt;
    private boolean toldFull;

    Watch(Lease lease, QuotaTable table) {
        this.lease = lease;
        this.table = table;
    }

    /** Once the lease is configured, which says how often to look. */
    void start() {
        lease.renew();
        thread = new PeriodicThread("quotahost-watch", everyMs(), this::look, () -> {});
        thread.start();
    }

    void close() {
        if (thread != null) thread.close();
    }

    /** Answers how long to wait for the next look, in ms. */
    private long look() {
        try {
            table.beat(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedAt));
            lease.check();
            table.factorInForce().move();
            long eighth = TimeUnit.SECONDS.toNanos(table.idleSeconds()) / QuotaTable.TICKS_PER_IDLE;
            if (System.nanoTime() - tickedAt >= eighth) {
                tickedAt = System.nanoTime();
                table.tick();
            }
            tellFull();
        } catch (RuntimeException e) {
            LOG.error("The watch failed once and goes on", e);
        }
        return everyMs();
    }

    private long everyMs() {
        return Math.min(QuotaTable.BEAT_MS, lease.checkEveryMs());
    }

    private void tellFull() {
        boolean full = table.size() >= table.clientsMax();
        if (full && !toldFull) {
            LOG.warn("The quota table is full ({}clients.max={}): further clients share the newcomers' limit until others have"
                    + " been silent for clients.idle", BrokerConfigs.PREFIX, table.clientsMax());
        }
        toldFull = full;
    }
}
