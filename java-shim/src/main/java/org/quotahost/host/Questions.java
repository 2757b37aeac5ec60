package org.quotahost.host;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.table.Dump;
import org.quotahost.table.FactorInForce;
import org.quotahost.table.QuotaTable;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.util.Json;

/**
 * Answers questions about this broker as it is now, in JSON, for the admin socket and for Python; also while Python hangs.
 *
 * <p>The questions are {@code state}, {@code client USER CLIENT-ID}, {@code uses MOST}, {@code usage MOST}, {@code holders},
 * {@code marks MOST} and {@code gauges}; any other is Python's. Java tells what it has, and Python words it
 * (quotahost.broker.host.dump).
 */
public final class Questions {
    /** How long an operator's question to Python may take, which may ask the cluster. */
    private static final long PYTHON_MS = 8_000;

    private final PythonHost host;
    private final Dump dump;
    /** By which rule in shadow scopes would be held back, as Python has told last. */
    private volatile String held = "{}";

    Questions(PythonHost host) {
        this.host = host;
        this.dump = new Dump(host.table);
    }

    /** The answer; a failure is {"error": why}, and never an exception. */
    public String answer(String[] words) {
        try {
            return switch (words[0]) {
                case "state" -> Json.text(state());
                case "client" -> Json.text(Map.of("state", state(), "client", dump.client(words[1], words[2])));
                case "uses" -> Json.text(Map.of("state", state(), "uses", dump.uses(Integer.parseInt(words[1]))));
                case "usage" -> Json.text(Map.of("state", state(), "usage", dump.usage(Integer.parseInt(words[1]))));
                case "holders" -> Json.text(Map.of("state", state(), "holders", dump.holders(words.length > 1 ? words[1] : "")));
                case "marks" -> Json.text(dump.marks(Integer.parseInt(words[1])));
                case "gauges" -> Json.text(host.gauges.all().stream().map(each -> new Object[] {
                        each.type(), each.name(), each.attribute(), Double.toString(each.value().getAsDouble())}).toList());
                default -> askPython(words);
            };
        } catch (RuntimeException e) {
            return Json.text(Map.of("error", e.toString()));
        }
    }

    private String askPython(String[] words) {
        String text = host.hostQuestions.ask("question", List.of(words), PYTHON_MS);
        return text != null ? text : Json.text(Map.of("error",
                "the Python host did not answer within " + PYTHON_MS / 1_000 + " s"));
    }

    /** Keeps what Python says of rules in shadow, for those who ask for the state. */
    public void held(String json) {
        held = json;
    }

    private Map<String, Object> state() {
        QuotaTable table = host.table;
        FactorInForce factor = table.factorInForce();
        Lease lease = host.lease;
        TopicQuotas topics = host.topicQuotas;
        Map<String, String> broker = host.config().broker();
        boolean fallback = lease.expired();
        Map<String, Double> floors = new TreeMap<>();
        for (ClientQuotaType type : ClientQuotaType.values()) floors.put(type.name(), factor.floor(type));
        // For how long a bucket of partition mutations saves up its rate; by Kafka's defaults 11 samples of 1 s.
        long mutationSeconds = Long.parseLong(broker.getOrDefault("controller.quota.window.num", "11"))
                * Long.parseLong(broker.getOrDefault("controller.quota.window.size.seconds", "1"));
        return Json.object("pid", ProcessHandle.current().pid(), "node", broker.getOrDefault("node.id", ""),
                "version", PythonEnvironment.built().getProperty("quotahost", ""),
                "enforced", factor.isEnforced(), "shadow", table.shadow(), "factor", factor.value(),
                "cause", fallback ? lease.cause() : factor.hostFactor().cause(),
                "host_factor", factor.hostFactor().value(), "limit_factor", factor.limitFactor(),
                "fallback", fallback, "silent_ms", Math.round(lease.ageSeconds() * 1_000),
                "factor_types", factor.factored().stream().map(Enum::name).sorted().toList(), "floors", floors,
                "fence", Map.of("installed", Fence.installed(), "closed", Fence.closed(), "counts_only", Fence.inShadow()),
                "creation_refused", Fence.refusesCreations(),
                "topics", Map.of("threshold", topics.threshold(), "rate", topics.rate(), "over", topics.over(),
                        "in_shadow", topics.overInShadow()),
                "controller", KafkaBeans.activeController(), "mutation_seconds", mutationSeconds, "log_dirs", logDirs(broker),
                "clients", table.size(), "clients_max", table.clientsMax(), "affected_topics", table.affectedTopics(),
                "marked", table.marked(), "held", held, "sources", host.gauges.names("FactorSource", "Answers", 1));
    }

    private static List<String> logDirs(Map<String, String> broker) {
        String named = broker.getOrDefault("log.dirs", "");
        if (named.isBlank()) named = broker.getOrDefault("log.dir", "");
        if (named.isBlank()) named = "/tmp/kafka-logs"; // Kafka's own default of log.dir
        return Stream.of(named.split(",")).map(String::strip).filter(each -> !each.isEmpty())
                .map(each -> Path.of(each).toAbsolutePath().toString()).toList();
    }
}
