package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.atomic.LongAccumulator;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's own producer, which writes to several topics at once and packs their batches into one request. */
final class MixedProducer {

    private MixedProducer() { }

    /** Counts of one topic's records: bytes sent and delivered, failures, and the longest delivery in ms. */
    private static final class Outcome {
        final LongAdder sent = new LongAdder();
        final LongAdder delivered = new LongAdder();
        final LongAdder failed = new LongAdder();
        final LongAccumulator longest = new LongAccumulator(Long::max, 0);
        volatile long deliveredInTime;
    }

    /**
     * A thread for each topic sends records of zeros to partition 0; then all threads wait for their deliveries.
     * args: seconds, {topic: bytes/s offered}, bytes of a record, {producer config}. Returns by topic: bytes delivered
     * within the time, bytes delivered in all, bytes sent, failures, and the longest delivery in ms.
     */
    static Object run(JsonNode args) throws Exception {
        Map<String, Outcome> outcomes = new LinkedHashMap<>();
        List<Thread> threads = new ArrayList<>();
        try (var producer = new KafkaProducer<>(Json.config(args.get(3)), new ByteArraySerializer(), new ByteArraySerializer())) {
            args.get(1).fields().forEachRemaining(each -> {
                Outcome outcome = new Outcome();
                outcomes.put(each.getKey(), outcome);
                double nanosEach = 1e9 * args.get(2).intValue() / each.getValue().doubleValue();
                threads.add(new Thread(() -> send(producer, each.getKey(), nanosEach, args, outcome)));
            });
            for (Thread thread : threads) thread.start();
            for (Thread thread : threads) thread.join();
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        outcomes.forEach((topic, each) -> answer.put(topic, Map.of("in-time", each.deliveredInTime, "delivered", each.delivered.sum(),
            "sent", each.sent.sum(), "failed", each.failed.sum(), "longest-ms", each.longest.get())));
        return answer;
    }

    private static void send(Producer<byte[], byte[]> producer, String topic, double nanosEach, JsonNode args, Outcome outcome) {
        byte[] value = new byte[args.get(2).intValue()];
        long begin = System.nanoTime();
        long end = begin + TimeUnit.SECONDS.toNanos(args.get(0).longValue());
        for (long n = 0; System.nanoTime() < end; n++) {
            long wait = begin + (long) (n * nanosEach) - System.nanoTime();
            if (wait > 0) java.util.concurrent.locks.LockSupport.parkNanos(wait);
            long at = System.nanoTime();
            producer.send(new ProducerRecord<>(topic, 0, null, value), (metadata, error) -> {
                (error == null ? outcome.delivered : outcome.failed).add(error == null ? value.length : 1);
                outcome.longest.accumulate((System.nanoTime() - at) / 1_000_000);
            });
            outcome.sent.add(value.length);
        }
        outcome.deliveredInTime = outcome.delivered.sum();
    }
}
