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
 * <p>ReplicaManager marks them after the append. A topic has one from its first append on this broker until the broker
 * leads none of its partitions any more.
 *
 * <p>They are MBeans, too. But to find out by these which topics there are would search all MBeans of this JVM, also those
 * of 50,000 clients, under a lock that each new sensor of Kafka's waits for. Yammer's registry has no lock, and only Kafka's
 * older metrics.
 *
 * @param registered all that is in the registry at any time
 */
public record Meters(Map<MetricName, Metric> registered) {
    public static final String BYTES_IN = "BytesInPerSec";
    private static final String GROUP = "kafka.server", TYPE = "BrokerTopicMetrics", TOPIC = ",topic=";

    static Meters ofKafka() {
        return new Meters(KafkaYammerMetrics.defaultRegistry().allMetrics());
    }

    public record Of(Metered meter) {
        /** The bytes, or requests, since it was made. */
        public long count() {
            return meter.count();
        }

        /** In bytes/s; Yammer moves it every 5 s. */
        public double oneMinuteRate() {
            return meter.oneMinuteRate();
        }

        /** How old it is, in seconds. */
        public double seconds() {
            long count = meter.count();
            return count == 0 ? 0 : count / meter.meanRate();
        }
    }

    /** Of all topics together, null if there is none. */
    public Of of(String meter) {
        MetricName name = new MetricName(GROUP, TYPE, meter, null, bean(meter));
        return registered.get(name) instanceof Metered found ? new Of(found) : null;
    }

    /** Of the bytes of single topics. */
    public Map<String, Of> topics() {
        String begin = bean(BYTES_IN) + TOPIC;
        Map<String, Of> found = new HashMap<>();
        registered.forEach((metric, meter) -> {
            String name = metric.getMBeanName(); // no topic's name needs quotes
            if (name.startsWith(begin) && meter instanceof Metered each) found.put(name.substring(begin.length()), new Of(each));
        });
        return found;
    }

    private static String bean(String meter) {
        return GROUP + ":type=" + TYPE + ",name=" + meter;
    }

    /** The count of one of Kafka's meters of all topics together, 0 if there is none. */
    public static double count(String meter) {
        Meters kafkas = Internals.METERS.get();
        Of found = kafkas == null ? null : kafkas.of(meter);
        return found == null ? 0 : found.count();
    }
}
