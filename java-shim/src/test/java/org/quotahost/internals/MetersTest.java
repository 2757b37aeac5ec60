package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What is read of Yammer's registry, in which Kafka keeps its older meters. */
class MetersTest {
    private static final String BEAN = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec";

    private final MetricsRegistry registry = KafkaYammerMetrics.defaultRegistry();
    private final Meters meters = new Meters.OfKafka();

    /** As KafkaMetricsGroup of Kafka's makes them. */
    private Meter make(String bean) {
        MetricName name = new MetricName("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", "a scope", bean);
        return registry.newMeter(name, "bytes", TimeUnit.SECONDS);
    }

    @AfterEach
    void remove() {
        registry.allMetrics().keySet().stream().toList().forEach(registry::removeMetric);
    }

    @Test
    void itFindsTheMeterOfAllTopicsAndThoseOfEach() {
        assertNull(meters.of(Meters.BYTES_IN));
        make(BEAN).mark(7);
        make(BEAN + ",topic=a.b").mark(5);
        make("kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec,topic=c");

        assertEquals(7, meters.of(Meters.BYTES_IN).count());
        assertEquals(Set.of("a.b"), meters.topics().keySet());
        assertEquals(5, meters.topics().get("a.b").count());
    }

    @Test
    void itTellsHowOldAMeterIs() throws InterruptedException {
        long before = System.nanoTime();
        make(BEAN).mark(10);
        Thread.sleep(20);
        double age = meters.of(Meters.BYTES_IN).seconds();
        assertTrue(age >= 0.02 && age <= (System.nanoTime() - before) / 1e9 + 0.001, age + " s");
    }
}
