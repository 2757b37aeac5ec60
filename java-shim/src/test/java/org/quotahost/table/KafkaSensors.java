package org.quotahost.table;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Rate;

/** Simulates what Kafka remembers of one quota type and when it asks (ClientQuotaManager.getOrCreateQuotaSensors). */
final class KafkaSensors {
    static final int NUM = 11;
    static final long WINDOW_MS = 1_000;
    private static final MetricConfig WINDOWS = new MetricConfig().samples(NUM).timeWindow(WINDOW_MS, TimeUnit.MILLISECONDS);

    private final QuotaTable table;
    private final int type;
    private final int lifeTicks;
    private final Map<String, Sensor> sensors = new HashMap<>();
    private int read;
    private int now;

    private static final class Sensor {
        final Map<String, String> tags;
        final Rate rate = new Rate();
        Double limit;
        int usedAt;

        Sensor(Map<String, String> tags, Double limit) {
            this.tags = new LinkedHashMap<>(tags);
            this.limit = limit;
        }
    }

    /** @param lifeTicks how many ticks of the table an unused sensor lives */
    KafkaSensors(QuotaTable table, int type, int lifeTicks) {
        this.table = table;
        this.type = type;
        this.lifeTicks = lifeTicks;
        this.read = table.factorInForce.generation(type);
    }

    /** Simulates a request of a client. Returns the limit by which Kafka measures the request. */
    Double request(String principal, String clientId) {
        Map<String, String> tags = Tables.tags(table, type, principal, clientId);
        int generation = table.factorInForce.generation(type);
        if (generation != read) sensors.values().forEach(sensor -> sensor.limit = table.limit(type, sensor.tags));
        read = generation;
        Sensor sensor = sensors.computeIfAbsent(name(tags), n -> new Sensor(tags, table.limit(type, tags)));
        sensor.usedAt = now;
        return sensor.limit;
    }

    /**
     * Simulates a request of so many bytes, which Kafka's own Rate measures over 11 windows of a second. Returns for how many
     * ms Kafka mutes the client (ClientQuotaManager.recordAndGetThrottleTimeMs, QuotaUtils.throttleTime).
     */
    long record(String principal, String clientId, double bytes, long nowMs) {
        Double limit = request(principal, clientId);
        Rate rate = sensors.get(name(Tables.tags(table, type, principal, clientId))).rate;
        rate.record(WINDOWS, bytes, nowMs);
        double measured = rate.measure(WINDOWS, nowMs);
        if (limit == null || measured <= limit) return 0;
        return Math.round((measured - limit) / limit * rate.windowSize(WINDOWS, nowMs));
    }

    private static String name(Map<String, String> tags) {
        return String.join(":", tags.values());
    }

    void tick() {
        now++;
        Tables.tick(table);
        sensors.values().removeIf(sensor -> now - sensor.usedAt > lifeTicks);
    }
}
