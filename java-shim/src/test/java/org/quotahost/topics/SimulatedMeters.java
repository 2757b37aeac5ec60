package org.quotahost.topics;

import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.management.JMException;
import javax.management.ObjectName;
import org.quotahost.metrics.NumberBean;

/** Kafka's meters of bytes in, as MBeans, in simulated time: like yammer's Meter they tick every 5 s. */
final class SimulatedMeters implements AutoCloseable {
    static final String TOTAL = "";
    private static final double ALPHA = 1 - Math.exp(-5 / 60.0);

    private final Map<String, Meter> meters = new LinkedHashMap<>();
    private long ms;

    private static final class Meter {
        private final long madeAt;
        private long count;
        private long uncounted;
        private double rate;
        private boolean ticked;

        Meter(long madeAt) {
            this.madeAt = madeAt;
        }

        void tick() {
            double mean = uncounted / 5.0;
            rate = ticked ? rate + ALPHA * (mean - rate) : mean;
            ticked = true;
            uncounted = 0;
        }
    }

    SimulatedMeters() {
        meter(TOTAL);
    }

    /** Makes the meter, as the first append does. */
    void meter(String topic) {
        meters.computeIfAbsent(topic, name -> {
            Meter meter = new Meter(ms);
            var bean = NumberBean.of(Map.of("OneMinuteRate", () -> meter.rate, "Count", () -> meter.count));
            try {
                ManagementFactory.getPlatformMBeanServer().registerMBean(bean, bean(name));
            } catch (JMException e) {
                throw new AssertionError(e);
            }
            return meter;
        });
    }

    void append(String topic, long bytes) {
        meter(topic);
        for (String name : new String[] {TOTAL, topic}) {
            meters.get(name).count += bytes;
            meters.get(name).uncounted += bytes;
        }
    }

    /** Lets simulated time go on, by a step that divides 5 s. */
    void sleep(long millis) {
        ms += millis;
        for (Meter meter : meters.values()) if ((ms - meter.madeAt) % 5_000 == 0) meter.tick();
    }

    long count(String topic) {
        return meters.get(topic).count;
    }

    double rate(String topic) {
        return meters.get(topic).rate;
    }

    long nanos() {
        return ms * 1_000_000;
    }

    /** Removes the meter, as Kafka does when this broker leads no partition of the topic any more. */
    void remove(String topic) {
        meters.remove(topic);
        try {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(bean(topic));
        } catch (JMException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public void close() {
        for (String topic : meters.keySet().toArray(new String[0])) remove(topic);
    }

    private static ObjectName bean(String topic) throws JMException {
        return new ObjectName("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec" + (topic.isEmpty() ? "" : ",topic=" + topic));
    }
}
