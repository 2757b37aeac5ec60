package org.quotahost.internals;

import com.yammer.metrics.core.Metered;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/**
 * Kafka's meters of what producers append (BrokerTopicMetrics), of all topics together and of each topic.
 *
 * <p>ReplicaManager marks them after the append. A topic has a meter from its first append on this broker until the broker no
 * longer leads any of its partitions.
 *
 * <p>The meters are MBeans, too. But a search for the topics' MBeans would go through all MBeans of this JVM, also those of
 * 50,000 clients, under a lock that each new sensor of Kafka's waits for. Yammer's registry has no lock, and contains only
 * Kafka's older metrics.
 *
 * @param registered a live view of all metrics in the registry
 */
public record Meters(Map<MetricName, Metric> registered) {
    public static final String BYTES_IN = "BytesInPerSec";
    private static final String GROUP = "kafka.server", TYPE = "BrokerTopicMetrics", TOPIC = ",topic=";

    static Meters ofKafka() {
        return new Meters(KafkaYammerMetrics.defaultRegistry().allMetrics());
    }

    public record Of(Metered meter) {
        /** Returns the bytes, or requests, since the meter was made. */
        public long count() {
            return meter.count();
        }

        /** Returns bytes/s; Yammer updates the rate every 5 s. */
        public double oneMinuteRate() {
            return meter.oneMinuteRate();
        }

        /** Returns the age of the meter in seconds. */
        public double seconds() {
            long count = meter.count();
            return count == 0 ? 0 : count / meter.meanRate();
        }
    }

    /** Returns the meter of all topics together, null if there is none. */
    public Of of(String meter) {
        MetricName name = new MetricName(GROUP, TYPE, meter, null, bean(meter));
        return registered.get(name) instanceof Metered found ? new Of(found) : null;
    }

    /** Returns the byte meters of single topics. */
    public Map<String, Of> topics() {
        String begin = bean(BYTES_IN) + TOPIC;
        Map<String, Of> found = new HashMap<>();
        registered.forEach((metric, meter) -> {
            String name = metric.getMBeanName(); // a topic's name needs no quotes
            if (name.startsWith(begin) && meter instanceof Metered each) found.put(name.substring(begin.length()), new Of(each));
        });
        return found;
    }

    private static String bean(String meter) {
        return GROUP + ":type=" + TYPE + ",name=" + meter;
    }

    /** Returns the count of one of Kafka's meters of all topics together, 0 if there is none. */
    public static double count(String meter) {
        Meters kafkas = Internals.METERS.get();
        Of found = kafkas == null ? null : kafkas.of(meter);
        return found == null ? 0 : found.count();
    }
}
