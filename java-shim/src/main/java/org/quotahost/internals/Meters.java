package org.quotahost.internals;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/**
 * Kafka's meters of what producers append (BrokerTopicMetrics), of all topics together and of each topic.
 *
 * <p>ReplicaManager marks them after the append. A topic has one from its first append on this broker until the broker
 * leads none of its partitions any more.
 */
public interface Meters {
    String BYTES_IN = "BytesInPerSec";

    interface Of {
        /** The bytes, or requests, since it was made. */
        long count();

        /** In bytes/s; Yammer moves it every 5 s. */
        double oneMinuteRate();

        /** How old it is, in seconds. */
        double seconds();
    }

    /** Of all topics together, null if there is none. */
    Of of(String meter);

    /** Of the bytes of single topics. */
    Map<String, Of> topics();

    /** The count of one of Kafka's meters of all topics together, 0 if there is none. */
    static double count(String meter) {
        Meters kafkas = Internals.METERS.get();
        Of found = kafkas == null ? null : kafkas.of(meter);
        return found == null ? 0 : found.count();
    }

    /**
     * Those of Yammer's registry. They are MBeans, too. But to find out by these which topics there are would search all
     * MBeans of this JVM, also those of 50,000 clients, under a lock that each new sensor of Kafka's waits for; the
     * registry has no lock, and only Kafka's older metrics.
     */
    final class OfKafka implements Meters {
        private static final String GROUP = "kafka.server", TYPE = "BrokerTopicMetrics", TOPIC = ",topic=";

        private final MetricsRegistry registry = KafkaYammerMetrics.defaultRegistry();

        @Override
        public Of of(String meter) {
            MetricName name = new MetricName(GROUP, TYPE, meter, null, bean(meter));
            return registry.allMetrics().get(name) instanceof Meter found ? new Yammers(found) : null;
        }

        @Override
        public Map<String, Of> topics() {
            String begin = bean(BYTES_IN) + TOPIC;
            Map<String, Of> found = new HashMap<>();
            for (Map.Entry<MetricName, Metric> each : registry.allMetrics().entrySet()) {
                String name = each.getKey().getMBeanName();
                if (!name.startsWith(begin) || !(each.getValue() instanceof Meter meter)) continue;
                found.put(name.substring(begin.length()), new Yammers(meter)); // no topic's name needs quotes
            }
            return found;
        }

        private static String bean(String meter) {
            return GROUP + ":type=" + TYPE + ",name=" + meter;
        }

        private record Yammers(Meter meter) implements Of {
            @Override
            public long count() {
                return meter.count();
            }

            @Override
            public double oneMinuteRate() {
                return meter.oneMinuteRate();
            }

            @Override
            public double seconds() {
                long count = meter.count();
                return count == 0 ? 0 : count / meter.meanRate();
            }
        }
    }
}
