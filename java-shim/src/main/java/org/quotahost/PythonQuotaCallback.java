package org.quotahost;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.host.PythonHost;
import org.quotahost.inbox.Inbox;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.internals.Internals;
import org.quotahost.internals.Mute;
import org.quotahost.internals.Requests;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.BrokerConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The quota callback that Kafka loads by client.quota.callback.class: it answers Kafka from the quota table, and refuses the
 * broker's start with the reason that loop.py, PythonEnvironment or Internals gives.
 *
 * <p>The quota table posts the clients that it does not know to the inbox. Kafka's events (client quotas, cluster, new
 * properties) go to the inbox, too. The Python host takes both from there.
 *
 * <p>If anything is wrong, configure() stops the broker with one ConfigException; later only an administrator's change is
 * refused with one. The class is AutoCloseable, since Kafka 4.1 and newer closes only such callbacks (Plugin.close).
 */
public class PythonQuotaCallback implements ClientQuotaCallback, AutoCloseable, Reconfigurable {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** The table's generation at which Kafka was last asked to read all limits again, by quota type. */
    private final AtomicIntegerArray reset = new AtomicIntegerArray(QuotaTable.TYPES);
    /** Before configure() has run, this table treats every client as a newcomer without a limit. */
    private volatile QuotaTable table = new QuotaTable(new Inbox());
    private final AtomicReference<PythonHost> host = new AtomicReference<>();

    @Override
    public void configure(Map<String, ?> configs) {
        KafkaBeans.lookFor(configs);
        Internals.start(getClass());
        try {
            host.set(PythonHost.acquire(BrokerConfigs.of(configs)));
            table = host().table;
        } catch (ConfigException e) {
            throw e;
        } catch (Throwable e) {
            throw new ConfigException("quotahost cannot start: " + e);
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    @Override
    public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        try {
            QuotaTable now = table;
            if (type.ordinal() >= QuotaTable.TYPES) return now.unlimited;
            if (type == ClientQuotaType.REQUEST && Mute.isFor(principal)) return now.turnedBack;
            return now.tags(type.ordinal(), principal, clientId);
        } catch (Throwable e) {
            return table.newcomers;
        }
    }

    @Override
    public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        try {
            return type.ordinal() < QuotaTable.TYPES ? table.limit(type.ordinal(), tags) : null;
        } catch (Throwable e) {
            return null;
        }
    }

    @Override
    public boolean quotaResetRequired(ClientQuotaType type) {
        try {
            int at = type.ordinal();
            if (at >= QuotaTable.TYPES) return false;
            // The order matters: `last` must never be newer than `now`. Otherwise a thread that was slow between the two reads
            // would set `reset` back, and Kafka would read all limits twice for nothing.
            int last = reset.get(at);
            int now = table.factorInForce.generation(at);
            return now != last && reset.compareAndSet(at, last, now); // true for only one of the threads
        } catch (Throwable e) {
            return false;
        }
    }

    // ---- metadata threads ------------------------------------------------------------------------------------

    @Override
    public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double rate) {
        clientQuota(type, entity, rate);
    }

    @Override
    public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
        clientQuota(type, entity, null);
    }

    private void clientQuota(ClientQuotaType type, ClientQuotaEntity entity, Double rate) {
        PythonHost now = host();
        // A quota type that only a later Kafka knows stays unlimited.
        if (now != null && type.ordinal() < QuotaTable.TYPES) now.inbox.clientQuota(type, entity, rate);
    }

    /** Kafka 4.4 deprecates this method and 5.0 removes it (KAFKA-19566); then the Python host asks the cluster. */
    public boolean updateClusterMetadata(Cluster cluster) {
        PythonHost now = host();
        if (now != null && cluster != null) {
            Fence.existing(cluster.topics());
            List<String> brokers = cluster.nodes().stream().map(Node::idString).sorted().toList();
            String id = cluster.clusterResource() == null ? "" : cluster.clusterResource().clusterId();
            now.inbox.cluster(id == null ? "" : id, brokers);
        }
        return false;
    }

    @Override
    public Set<String> reconfigurableConfigs() {
        PythonHost now = host();
        return now == null ? Set.of() : now.reconfigurable();
    }

    /**
     * Throws ConfigException if the host refuses an administrator's change. Kafka also calls this when it applies stored
     * properties, on the metadata loader's thread (DynamicBrokerConfig.processReconfiguration). There an exception or a long
     * wait would lose all dynamic configs of that resource, Kafka's own too, so nothing is checked: only reconfigure() acts.
     */
    @Override
    public void validateReconfiguration(Map<String, ?> configs) {
        PythonHost now = host();
        if (now != null && Requests.isHandled()) now.check(BrokerConfigs.of(configs));
    }

    @Override
    public void reconfigure(Map<String, ?> configs) {
        PythonHost now = host();
        if (now != null) now.apply(configs);
    }

    /**
     * Catches everything, since an exception would end Kafka's own shutdown early. A node's two roles may share one callback,
     * and each may close it (Kafka's pull request 22792), so the host is released only once.
     */
    @Override
    public void close() {
        PythonHost last = host.getAndSet(null);
        try {
            if (last != null) PythonHost.release(last);
        } catch (Throwable e) {
            LOG.error("The Python host could not be closed", e);
        }
    }

    /** Null before configure() and after close(). */
    PythonHost host() {
        return host.get();
    }
}
