package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DeleteTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;

/** Creates, adds and deletes partitions with a client that knows the error of an exceeded quota (KIP-599). */
final class Mutations {

    private Mutations() { }

    /**
     * args: bootstrap, client-id, "create", "grow" or "delete", {topic: partitions}, validate only, retry if the quota
     * is exceeded, ms for all tries.
     * Returns by topic null, or the error: its class, its message, and the throttle time in ms if a quota is exceeded.
     */
    static Object run(JsonNode args) throws Exception {
        Map<String, Integer> topics = new TreeMap<>();
        args.get(3).fields().forEachRemaining(each -> topics.put(each.getKey(), each.getValue().intValue()));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args.get(0).textValue(),
                "client.id", args.get(1).textValue(), "default.api.timeout.ms", args.get(6).intValue(),
                "request.timeout.ms", Math.min(45_000, args.get(6).intValue())))) {
            Map<String, Object> outcomes = new HashMap<>();
            boolean validate = args.get(4).booleanValue();
            boolean retry = args.get(5).booleanValue();
            for (var each : request(admin, args.get(2).textValue(), topics, validate, retry).entrySet()) {
                outcomes.put(each.getKey(), outcome(each.getValue()));
            }
            return outcomes;
        }
    }

    private static Map<String, KafkaFuture<Void>> request(Admin admin, String kind, Map<String, Integer> topics, boolean validate,
            boolean retry) {
        return switch (kind) {
            case "create" -> admin.createTopics(created(topics),
                new CreateTopicsOptions().retryOnQuotaViolation(retry).validateOnly(validate)).values();
            case "grow" -> admin.createPartitions(grown(topics),
                new CreatePartitionsOptions().retryOnQuotaViolation(retry).validateOnly(validate)).values();
            case "delete" -> admin.deleteTopics(topics.keySet(),
                new DeleteTopicsOptions().retryOnQuotaViolation(retry)).topicNameValues();
            default -> throw new IllegalArgumentException(kind);
        };
    }

    private static List<NewTopic> created(Map<String, Integer> topics) {
        List<NewTopic> all = new ArrayList<>();
        topics.forEach((name, partitions) -> all.add(new NewTopic(name, partitions, (short) 1)));
        return all;
    }

    private static Map<String, NewPartitions> grown(Map<String, Integer> topics) {
        Map<String, NewPartitions> all = new HashMap<>();
        topics.forEach((name, partitions) -> all.put(name, NewPartitions.increaseTo(partitions)));
        return all;
    }

    private static Object outcome(KafkaFuture<Void> future) throws InterruptedException {
        try {
            future.get();
            return null;
        } catch (ExecutionException e) {
            Throwable error = e.getCause();
            Map<String, Object> outcome = new HashMap<>();
            outcome.put("error", error.getClass().getSimpleName());
            outcome.put("message", error.getMessage());
            outcome.put("throttle", error instanceof ThrottlingQuotaExceededException exceeded ? exceeded.throttleTimeMs() : 0);
            return outcome;
        }
    }
}
