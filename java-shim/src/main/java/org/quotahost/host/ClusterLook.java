package org.quotahost.host;

import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.quotahost.inbox.Inbox;
import org.quotahost.util.Schedule;

/**
 * Asks the cluster which brokers are alive, for as long as Kafka does not say so by itself.
 *
 * <p>Kafka's updateClusterMetadata is deprecated since 4.4 and goes with 5.0 (KAFKA-19566), and up to 4.2.1 and 4.3.1
 * it is not called while a broker that has replicas is down (KAFKA-20746). The exemptions of brokers, the supplier
 * cluster-quota and other suppliers' cluster_changed() go by it. So if it has not been called soon after the start,
 * the Admin client is asked instead, once a minute. On the same thread a StoredLook asks what is stored.
 */
final class ClusterLook {
    private static final long FIRST_MS = 10_000;
    private static final long EVERY_MS = 60_000;

    private final Inbox inbox;
    /** ClusterAdmin.alive(). */
    private final Supplier<String[]> alive;
    private final StoredLook storedLook;
    private final Schedule schedule = new Schedule("quotahost-cluster");
    private volatile boolean kafkaTells;

    ClusterLook(Inbox inbox, Supplier<String[]> alive, StoredLook storedLook) {
        this.inbox = inbox;
        this.alive = alive;
        this.storedLook = storedLook;
    }

    void start() {
        schedule.add("the question who is alive", FIRST_MS, this::look);
    }

    void end() {
        schedule.end();
    }

    /** Kafka's own news: from now on nobody else is asked. */
    void news(String clusterId, List<String> brokers) {
        kafkaTells = true;
        inbox.cluster(clusterId, brokers);
    }

    /** Answers how long to wait until the next time, in ms. */
    long look() {
        storedLook.look();
        if (kafkaTells) return EVERY_MS;
        String[] reply = alive.get();
        // An answer that Kafka's own news has overtaken may be older than they are.
        if (reply[0].isEmpty() && !kafkaTells) inbox.cluster(reply[1], Arrays.asList(reply).subList(2, reply.length));
        return EVERY_MS;
    }
}
