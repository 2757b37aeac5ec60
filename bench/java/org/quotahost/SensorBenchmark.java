package org.quotahost;

import java.net.InetAddress;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.kafka.server.quota.QuotaType;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;

/**
 * Times what Kafka's own quota manager does for each request of 1,000 clients: alone, and among the work of a request.
 *
 * <p>sensors: "none" is a broker without quotas, which records nothing; "client" gives each client a sensor, as Kafka's
 * own default quota for (user, client-id) does; "one" is a callback by which all clients share one sensor; "16" spreads
 * them over 16.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class SensorBenchmark {
    private static final int CLIENTS = 1_000;

    @State(Scope.Benchmark)
    public static class Broker {
        @Param({"none", "client", "one", "16"})
        public String sensors;

        ClientQuotaManager manager;
        final Session[] sessions = new Session[CLIENTS];

        @Setup
        public void fill() throws Exception {
            for (int i = 0; i < CLIENTS; i++) {
                sessions[i] = new Session(new KafkaPrincipal("User", "user-" + i), InetAddress.getLoopbackAddress());
            }
            manager = switch (sensors) {
                case "none" -> manager(Optional.empty());
                case "client" -> client();
                case "one" -> manager(Optional.of(new Spread(1)));
                default -> manager(Optional.of(new Spread(Integer.parseInt(sensors))));
            };
        }

        /** Otherwise the manager's thread would keep the JVM. */
        @TearDown
        public void close() {
            manager.shutdown();
        }

        private static ClientQuotaManager manager(Optional<ClientQuotaCallback> callback) {
            return new ClientQuotaManager(new ClientQuotaManagerConfig(), new Metrics(), QuotaType.PRODUCE, Time.SYSTEM, "",
                    callback.map(c -> Plugin.wrapInstance(c, null, "callback")));
        }

        private static ClientQuotaManager client() {
            ClientQuotaManager made = manager(Optional.empty());
            made.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY),
                    Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID), Optional.of(Quota.upperBound(1e15)));
            return made;
        }
    }

    /** All clients without a limit, by the principal's hash over so many sensors. */
    private static final class Spread implements ClientQuotaCallback {
        private final Map<String, String>[] tags;

        @SuppressWarnings({"unchecked", "rawtypes"})
        Spread(int count) {
            tags = new Map[count];
            Arrays.setAll(tags, i -> new LinkedHashMap<>(Map.of("user", "<unlimited " + i + ">", "client-id", "")));
        }

        @Override
        public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
            return tags[(principal.getName().hashCode() & Integer.MAX_VALUE) % tags.length];
        }

        @Override
        public Double quotaLimit(ClientQuotaType type, Map<String, String> metricTags) {
            return null;
        }

        @Override
        public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double newValue) {}

        @Override
        public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {}

        @Override
        public boolean quotaResetRequired(ClientQuotaType type) {
            return false;
        }

        public boolean updateClusterMetadata(org.apache.kafka.common.Cluster cluster) {
            return false;
        }

        @Override
        public void close() {}

        @Override
        public void configure(Map<String, ?> configs) {}
    }

    @Benchmark
    public int alone(Broker broker) {
        Session session = broker.sessions[ThreadLocalRandom.current().nextInt(CLIENTS)];
        return broker.manager.maybeRecordAndGetThrottleTimeMs(session, "client", 1_000, Time.SYSTEM.milliseconds());
    }

    /** A small produce request takes a request thread some 20 us; no broker records more often than between such. */
    @Benchmark
    public int amongWork(Broker broker) {
        Blackhole.consumeCPU(8_000);
        return alone(broker);
    }
}
