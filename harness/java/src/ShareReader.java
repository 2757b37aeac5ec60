package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads as a member of a share group (KIP-932), which librdkafka does not support. */
final class ShareReader {
    private static final long PATIENCE_NANOS = 60_000_000_000L;

    private ShareReader() { }

    /**
     * Reads so many records, acknowledges each, and waits until the broker has stored that. Returns their values.
     * args: topic, number of records, {consumer config}. Throws the exception of a failed acknowledgement.
     */
    static Object run(JsonNode args) throws Exception {
        List<String> values = new ArrayList<>();
        long begin = System.nanoTime();
        try (var consumer = new KafkaShareConsumer<>(Json.config(args.get(2)), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(args.get(0).textValue()));
            while (values.size() < args.get(1).intValue()) {
                if (System.nanoTime() - begin > PATIENCE_NANOS) throw new TimeoutException("only " + values);
                consumer.poll(Duration.ofMillis(200)).forEach(each -> values.add(each.value()));
                for (Optional<KafkaException> failed : consumer.commitSync().values()) {
                    if (failed.isPresent()) throw failed.get();
                }
            }
        }
        return values;
    }

    /**
     * Reads for so many seconds. args: topic, seconds, {consumer config}.
     * Returns the bytes of the values, the number of records that the broker marks as delivered before, and the longest
     * throttle time in ms that brokers reported.
     */
    static Object measure(JsonNode args) throws Exception {
        long bytes = 0, later = 0;
        double throttle = 0;
        try (var consumer = new KafkaShareConsumer<>(Json.config(args.get(2)), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(args.get(0).textValue()));
            long end = System.nanoTime() + args.get(1).longValue() * 1_000_000_000L;
            while (System.nanoTime() < end) {
                for (var each : consumer.poll(Duration.ofMillis(200))) {
                    bytes += each.value().length;
                    if (deliveries(each) > 1) later++;
                }
                throttle = Math.max(throttle, throttleTime(consumer));
            }
        }
        return Map.of("bytes", bytes, "later", later, "throttle", throttle);
    }

    /** Returns how often the broker has delivered a record, including this time; by reflection, since Kafka 3.9 lacks it. */
    private static int deliveries(ConsumerRecord<?, ?> each) throws ReflectiveOperationException {
        var told = (Optional<?>) ConsumerRecord.class.getMethod("deliveryCount").invoke(each);
        return told.map(count -> ((Number) count).intValue()).orElse(1);
    }

    private static double throttleTime(KafkaShareConsumer<?, ?> consumer) {
        return consumer.metrics().entrySet().stream().filter(each -> each.getKey().name().equals("fetch-throttle-time-max"))
            .mapToDouble(each -> (Double) each.getValue().metricValue()).filter(Double::isFinite).max().orElse(0);
    }
}
