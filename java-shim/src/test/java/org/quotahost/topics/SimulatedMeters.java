package org.quotahost.topics;

import com.yammer.metrics.stats.EWMA;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.quotahost.internals.InternalsFixture;
import org.quotahost.internals.Meters;

/** Kafka's meters of bytes in, in simulated time: each has Yammer's own mean, which ticks every 5 s. */
final class SimulatedMeters implements Meters, AutoCloseable {
    static final String TOTAL = "";

    private final Map<String, Simulated> meters = new LinkedHashMap<>();
    private long ms;

    private final class Simulated implements Of {
        private final long madeAt = ms;
        private final EWMA mean = EWMA.oneMinuteEWMA();
        private long count;

        @Override
        public long count() {
            return count;
        }

        @Override
        public double oneMinuteRate() {
            return mean.rate(TimeUnit.SECONDS);
        }

        @Override
        public double seconds() {
            return (ms - madeAt) / 1e3;
        }
    }

    SimulatedMeters() {
        meter(TOTAL);
        InternalsFixture.meters(this);
    }

    @Override
    public Of of(String meter) {
        return meter.equals(BYTES_IN) ? meters.get(TOTAL) : null;
    }

    @Override
    public Map<String, Of> topics() {
        Map<String, Of> topics = new LinkedHashMap<>(meters);
        topics.remove(TOTAL);
        return topics;
    }

    /** Makes the meter, as the first append does. */
    void meter(String topic) {
        meters.computeIfAbsent(topic, name -> new Simulated());
    }

    void append(String topic, long bytes) {
        meter(topic);
        for (String name : new String[] {TOTAL, topic}) {
            meters.get(name).count += bytes;
            meters.get(name).mean.update(bytes);
        }
    }

    /** Lets simulated time go on, by a step that divides 5 s. */
    void sleep(long millis) {
        ms += millis;
        for (Simulated meter : meters.values()) if ((ms - meter.madeAt) % 5_000 == 0) meter.mean.tick();
    }

    long count(String topic) {
        return meters.get(topic).count;
    }

    double rate(String topic) {
        return meters.get(topic).oneMinuteRate();
    }

    long nanos() {
        return ms * 1_000_000;
    }

    /** Removes the meter, as Kafka does when this broker leads no partition of the topic any more. */
    void remove(String topic) {
        meters.remove(topic);
    }

    @Override
    public void close() {
        InternalsFixture.meters(null);
    }
}
