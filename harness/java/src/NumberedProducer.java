package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own producer, which sends numbered records: its retries and order differ from librdkafka's. */
final class NumberedProducer {

    private NumberedProducer() { }

    /**
     * Sends "0", "1", ... to partition 0, one record every few milliseconds, and waits for all of them.
     * args: topic, number of records, milliseconds between two, {producer config}. Throws the exception of a failed delivery.
     */
    static Object run(JsonNode args) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(Json.config(args.get(3)), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < args.get(1).intValue(); i++) {
                sent.add(producer.send(new ProducerRecord<>(args.get(0).textValue(), 0, null, Integer.toString(i))));
                Thread.sleep(args.get(2).longValue());
            }
        }
        for (Future<RecordMetadata> each : sent) each.get();
        return null;
    }
}
