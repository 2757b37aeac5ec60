package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The throttle times that Kafka's own producer and consumer show after brokers have reported them (KIP-13). */
final class ThrottleTimes {
    private static final long PATIENCE_NANOS = 60_000_000_000L;

    private ThrottleTimes() { }

    /**
     * Sends a record of each of these sizes to partition 0, each after the answer to the previous one.
     * args: topic, [bytes], {producer config}. Returns the metrics of throttle times by name, in ms.
     */
    static Object produce(JsonNode args) throws Exception {
        try (var producer = new KafkaProducer<>(Json.config(args.get(2)), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode size : args.get(1)) {
                producer.send(new ProducerRecord<>(args.get(0).textValue(), 0, null, new byte[size.intValue()])).get();
            }
            return shown(producer.metrics());
        }
    }

    /**
     * Reads the first record of partition 0 repeatedly.
     * args: topic, how often, {consumer config}. Returns the metrics of throttle times by name, in ms.
     */
    static Object consume(JsonNode args) throws Exception {
        TopicPartition from = new TopicPartition(args.get(0).textValue(), 0);
        long begin = System.nanoTime();
        try (var consumer = new KafkaConsumer<>(Json.config(args.get(2)), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(from));
            for (int read = 0; read < args.get(1).intValue(); read++) {
                consumer.seekToBeginning(List.of(from));
                while (consumer.poll(Duration.ofMillis(200)).isEmpty()) {
                    if (System.nanoTime() - begin > PATIENCE_NANOS) throw new TimeoutException("read " + read + " times");
                }
            }
            return shown(consumer.metrics());
        }
    }

    private static Map<String, Object> shown(Map<MetricName, ? extends Metric> metrics) {
        Map<String, Object> shown = new TreeMap<>();
        metrics.forEach((name, metric) -> {
            if (name.name().contains("-throttle-time-")) shown.put(name.name(), metric.metricValue());
        });
        return shown;
    }
}
