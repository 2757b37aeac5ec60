import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** The driver of Kafka's own producer. tests/clients/libraries.py explains the lines of the output. */
final class Driver {
    private static final int VALUE_BYTES = 1000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final AtomicLong outstanding = new AtomicLong();
    private static volatile boolean ended;

    private Driver() { }

    public static void main(String[] args) throws Exception {
        JsonNode spec = JSON.readTree(args[0]);
        print(Map.of("event", "started", "version", AppInfoParser.getVersion()));
        String user = spec.get("User").textValue();
        Map<String, Object> config = new HashMap<>(Map.of(
                "bootstrap.servers", spec.get("Bootstrap").textValue(), "client.id", user,
                "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN",
                "sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\""
                        + user + "\" password=\"" + user + "\";"));
        if (spec.get("Create").booleanValue()) create(config, spec.get("Topic").textValue());
        else run(config, spec);
        System.exit(0);
    }

    private static void run(Map<String, Object> config, JsonNode spec) throws Exception {
        var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        Thread end = new Thread(Driver::waitForEnd);
        end.setDaemon(true);
        end.start();
        long sent = 0, next = System.nanoTime(), most = spec.get("Outstanding").longValue();
        long period = (long) (1e9 / spec.get("Rate").doubleValue());
        while (!ended) {
            long before = System.nanoTime();
            if (before < next || outstanding.get() >= most) {
                Thread.sleep(1);
                continue;
            }
            long number = sent++;
            String value = String.format("%010d", number) + "x".repeat(VALUE_BYTES - 10);
            outstanding.incrementAndGet();
            producer.send(new ProducerRecord<>(spec.get("Topic").textValue(), value), (metadata, error) -> {
                print(error == null ? Map.of("event", "acked", "id", number)
                        : Map.of("event", "failed", "id", number, "error", error.toString()));
                outstanding.decrementAndGet();
            });
            next = Math.max(next + period, before - 50_000_000);
        }
        for (int i = 0; i < 3_000 && outstanding.get() > 0; i++) Thread.sleep(10);
        print(Map.of("event", "done", "sent", sent));
    }

    private static void create(Map<String, Object> config, String topic) throws Exception {
        try (Admin admin = Admin.create(config)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            print(Map.of("event", "created"));
        } catch (Exception e) {
            print(Map.of("event", "refused", "error", e.toString()));
        }
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) { }
        } catch (java.io.IOException e) {
            // the input has ended, too
        }
        ended = true;
    }

    private static void print(Map<String, Object> event) {
        Map<String, Object> line = new HashMap<>(event);
        line.put("ms", System.currentTimeMillis());
        try {
            String text = JSON.writeValueAsString(line);
            synchronized (JSON) {
                System.out.println(text);
            }
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }
}
