package org.quotahost.table;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Simulates what Kafka remembers of one quota type and when it asks (ClientQuotaManager.getOrCreateQuotaSensors).
 */
final class KafkaSensors {
    private final QuotaTable table;
    private final int type;
    private final int lifeTicks;
    private final Map<String, Sensor> sensors = new HashMap<>();
    private int read;
    private int now;

    private static final class Sensor {
        final Map<String, String> tags;
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
        this.read = table.generation(type);
    }

    /** Simulates a request of a client; answers the limit by which Kafka measures it. */
    Double request(String principal, String clientId) {
        Map<String, String> tags = Tables.tags(table, type, principal, clientId);
        int generation = table.generation(type);
        if (generation != read) sensors.values().forEach(sensor -> sensor.limit = table.limit(type, sensor.tags));
        read = generation;
        Sensor sensor = sensors.computeIfAbsent(String.join(":", tags.values()), n -> new Sensor(tags, table.limit(type, tags)));
        sensor.usedAt = now;
        return sensor.limit;
    }

    void tick() {
        now++;
        table.tick();
        sensors.values().removeIf(sensor -> now - sensor.usedAt > lifeTicks);
    }
}
