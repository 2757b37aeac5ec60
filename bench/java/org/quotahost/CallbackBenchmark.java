package org.quotahost;

import io.strimzi.kafka.quotas.StaticQuotaCallback;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
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
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/** Measures the calls that Kafka makes on each request: callbacks of quotahost, Strimzi and Kafka, 1,000 clients, two threads. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
@Threads(2)
public class CallbackBenchmark {
    @State(Scope.Benchmark)
    public static class Callback {
        @Param({"quotahost", "quotahost-user", "strimzi", "kafka"})
        public String implementation;

        ClientQuotaCallback callback;
        final KafkaPrincipal[] principals = Filled.principals(Filled.CLIENTS);
        final List<Map<String, String>> tags = new ArrayList<>();

        @Setup
        public void fill() throws Exception {
            callback = switch (implementation) {
                case "strimzi" -> strimzi();
                case "kafka" -> kafka();
                case "quotahost-user" -> Filled.callback(Filled.table(principals, 1)); // QuotaTable's code of a user's shared quota
                default -> Filled.callback(Filled.table(principals, 0));
            };
            for (KafkaPrincipal p : principals) tags.add(callback.quotaMetricTags(ClientQuotaType.FETCH, p, Filled.CLIENT_ID));
        }

        private ClientQuotaCallback strimzi() {
            StaticQuotaCallback made = new StaticQuotaCallback();
            Map<String, Object> configs = new HashMap<>(Map.of("broker.id", "1", "node.id", "1"));
            configs.put("client.quota.callback.static.produce", "1000000");
            configs.put("client.quota.callback.static.fetch", "1000000");
            configs.put("client.quota.callback.static.kafka.admin.bootstrap.servers", "127.0.0.1:1");
            made.configure(configs);
            return made;
        }

        /** Returns Kafka's own callback with a default quota for (user, client-id), in the form of Kafka's quota manager. */
        private ClientQuotaCallback kafka() throws Exception {
            var manager = new ClientQuotaManager(
                    new ClientQuotaManagerConfig(), new Metrics(), QuotaType.FETCH, Time.SYSTEM, "");
            manager.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY),
                    Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID), Optional.of(Quota.upperBound(1e6)));
            Field field = ClientQuotaManager.class.getDeclaredField("quotaCallback");
            field.setAccessible(true);
            manager.shutdown(); // its thread would delay JMH's end by half a minute
            return (ClientQuotaCallback) field.get(manager);
        }
    }

    @Benchmark
    public Object tagsAndReset(Callback c, Filled.Turn turn) {
        Object tags = c.callback.quotaMetricTags(ClientQuotaType.PRODUCE, c.principals[turn.next()], Filled.CLIENT_ID);
        return c.callback.quotaResetRequired(ClientQuotaType.PRODUCE) ? null : tags;
    }

    @Benchmark
    public Object fetchLimit(Callback c, Filled.Turn turn) {
        return c.callback.quotaLimit(ClientQuotaType.FETCH, c.tags.get(turn.next()));
    }
}
