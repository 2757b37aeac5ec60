package org.quotahost.topics;

import com.yammer.metrics.core.Metered;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.stats.EWMA;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.quotahost.internals.InternalsFixture;
import org.quotahost.internals.Meters;

/** Kafka's meters of incoming bytes, in simulated time; each has Yammer's own mean, which ticks every 5 s. */
final class SimulatedMeters implements AutoCloseable {
    static final String TOTAL = "";

    private final Map<String, Simulated> meters = new LinkedHashMap<>();
    private final Meters kafkas = new Meters(new HashMap<>());
    private long ms;

    private final class Simulated implements InvocationHandler {
        private final long madeAt = ms;
        private final EWMA mean = EWMA.oneMinuteEWMA();
        private long count;

        /** Answers the questions to a meter. */
        @Override
        public Object invoke(Object meter, Method method, Object[] arguments) {
            return switch (method.getName()) {
                case "count" -> count;
                case "oneMinuteRate" -> mean.rate(TimeUnit.SECONDS);
                case "meanRate" -> count * 1e3 / (ms - madeAt);
                default -> throw new UnsupportedOperationException(method.getName());
            };
        }
    }

    SimulatedMeters() {
        meter(TOTAL);
        InternalsFixture.meters(kafkas);
    }

    Meters.Of total() {
        return kafkas.of(Meters.BYTES_IN);
    }

    private static MetricName name(String topic) {
        String bean = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec" + (topic.isEmpty() ? "" : ",topic=" + topic);
        return new MetricName("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", null, bean);
    }

    /** Makes the meter, as the first append does. */
    void meter(String topic) {
        Simulated meter = meters.computeIfAbsent(topic, any -> new Simulated());
        Class<?>[] type = {Metered.class};
        kafkas.registered().put(name(topic), (Metered) Proxy.newProxyInstance(getClass().getClassLoader(), type, meter));
    }

    void append(String topic, long bytes) {
        meter(topic);
        for (String name : new String[] {TOTAL, topic}) {
            meters.get(name).count += bytes;
            meters.get(name).mean.update(bytes);
        }
    }

    /** Advances simulated time, by a step that divides 5 s. */
    void sleep(long millis) {
        ms += millis;
        for (Simulated meter : meters.values()) if ((ms - meter.madeAt) % 5_000 == 0) meter.mean.tick();
    }

    long count(String topic) {
        return meters.get(topic).count;
    }

    double rate(String topic) {
        return meters.get(topic).mean.rate(TimeUnit.SECONDS);
    }

    long nanos() {
        return ms * 1_000_000;
    }

    /** Removes the meter, as Kafka does when this broker no longer leads any partition of the topic. */
    void remove(String topic) {
        meters.remove(topic);
        kafkas.registered().remove(name(topic));
    }

    @Override
    public void close() {
        InternalsFixture.meters(null);
    }
}
