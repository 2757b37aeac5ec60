package org.quotahost.host;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Fence;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.metrics.Gauges;
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
 * (quotahost.host.dump).
 */
final class Questions {
    private final QuotaTable table;
    private final Dump dump;
    private final Lease lease;
    private final TopicQuotas topics;
    private final Gauges gauges;
    private final Map<String, String> broker;
    private final Function<String[], String> python;
    /** By which rule in shadow scopes would be held back, as Python has told last. */
    private volatile String held = "{}";

    /**
     * @param broker some of the broker's own properties
     * @param python answers what is none of these questions
     */
    Questions(QuotaTable table, Lease lease, TopicQuotas topics, Gauges gauges, Map<String, String> broker,
            Function<String[], String> python) {
        this.table = table;
        this.dump = new Dump(table);
        this.lease = lease;
        this.topics = topics;
        this.gauges = gauges;
        this.broker = broker;
        this.python = python;
    }

    /** The answer; a failure is {"error": why}, and never an exception. */
    String answer(String... words) {
        try {
            return switch (words[0]) {
                case "state" -> Json.text(state());
                case "client" -> Json.text(Map.of("state", state(), "client", dump.client(words[1], words[2])));
                case "uses" -> Json.text(Map.of("state", state(), "uses", dump.uses(Integer.parseInt(words[1]))));
                case "usage" -> Json.text(Map.of("usage", dump.usage(Integer.parseInt(words[1]))));
                case "holders" -> Json.text(Map.of("state", state(), "holders", dump.holders(words.length > 1 ? words[1] : "")));
                case "marks" -> Json.text(dump.marks(Integer.parseInt(words[1])));
                case "gauges" -> Json.text(gauges.all().stream()
                        .map(g -> new Object[] {g.type(), g.name(), g.attribute(), Double.toString(g.value().getAsDouble())}).toList());
                default -> python.apply(words);
            };
        } catch (RuntimeException e) {
            return Json.text(Map.of("error", e.toString()));
        }
    }

    void held(String json) {
        held = json;
    }

    private Map<String, Object> state() {
        FactorInForce factor = table.factorInForce();
        boolean fallback = lease.expired();
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("pid", ProcessHandle.current().pid());
        all.put("node", broker.getOrDefault("node.id", ""));
        all.put("version", version());
        all.put("enforced", factor.isEnforced());
        all.put("shadow", table.shadow());
        all.put("factor", factor.value());
        all.put("cause", fallback ? lease.cause() : factor.hostFactor().cause());
        all.put("host_factor", factor.hostFactor().value());
        all.put("limit_factor", factor.limitFactor());
        all.put("fallback", fallback);
        all.put("silent_ms", Math.round(lease.ageSeconds() * 1_000));
        all.put("factor_types", factor.factored().stream().map(Enum::name).sorted().toList());
        Map<String, Double> floors = new TreeMap<>();
        for (ClientQuotaType type : ClientQuotaType.values()) floors.put(type.name(), factor.floor(type));
        all.put("floors", floors);
        all.put("fence", Map.of("installed", Fence.installed(), "closed", Fence.closed(), "counts_only", Fence.inShadow()));
        all.put("creation_refused", Creation.refused());
        all.put("topics", Map.of("threshold", topics.threshold(), "rate", topics.rate(), "over", topics.over(),
                "in_shadow", topics.overInShadow()));
        all.put("controller", KafkaBeans.activeController());
        all.put("mutation_seconds", number("controller.quota.window.num", "11") * number("controller.quota.window.size.seconds", "1"));
        all.put("log_dirs", logDirs());
        all.put("clients", table.size());
        all.put("clients_max", table.clientsMax());
        all.put("affected_topics", table.affectedTopics());
        all.put("marked", table.marked());
        all.put("held", held);
        all.put("sources", gauges.names("FactorSource", "Answers", 1));
        return all;
    }

    private long number(String property, String byDefault) {
        return Long.parseLong(broker.getOrDefault(property, byDefault));
    }

    private List<String> logDirs() {
        String named = broker.getOrDefault("log.dirs", "");
        if (named.isBlank()) named = broker.getOrDefault("log.dir", "");
        if (named.isBlank()) named = "/tmp/kafka-logs"; // Kafka's own default of log.dir
        return Stream.of(named.split(",")).map(String::strip).filter(each -> !each.isEmpty())
                .map(each -> Path.of(each).toAbsolutePath().toString()).toList();
    }

    private static String version() {
        return org.quotahost.python.PythonEnvironment.built().getProperty("quotahost", "");
    }
}
