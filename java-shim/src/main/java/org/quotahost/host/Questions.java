package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.table.Dump;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Json;
import org.quotahost.util.Resources;

/**
 * The questions about this broker, and their answers: Java answers from the table and the gauges, also while Python hangs.
 *
 * <p>Operators (AdminSocket) and Python ask for {@code state}, {@code client USER CLIENT-ID}, {@code uses MOST},
 * {@code usage MOST}, {@code holders TYPE}, {@code marks MOST} and {@code gauges}. Java answers these in JSON with
 * raw data, and Python turns them into words (quotahost.broker.host.dump).
 *
 * <p>Only Python can answer the rest: an operator's other questions, JMX's table of clients, and whether new properties are
 * valid. Java never calls Python, so such a question goes to Python as an event with a ticket, its answer comes back with the
 * same ticket (answer), and the asking thread waits. A client's request never waits.
 */
final class Questions {
    /** How long an operator's question to Python may take, since Python may ask the cluster. */
    private static final long PYTHON_MS = 8_000;
    private static final long CHECK_MS = 2_000;
    private static final Set<String> ASKED = Set.of("log.dirs", "log.dir",
            "controller.quota.window.num", "controller.quota.window.size.seconds");

    private final PythonHost host;
    private final Dump dump;
    private final AtomicLong tickets = new AtomicLong();
    /** The questions whose threads wait, by ticket. */
    private final Map<String, CompletableFuture<Object>> open = new ConcurrentHashMap<>();
    /** The rules in shadow that would hold scopes back, as Python has reported them last, in JSON. */
    volatile String held = "{}";

    Questions(PythonHost host) {
        this.host = host;
        this.dump = new Dump(host.table);
    }

    // ---- what Python answers ----------------------------------------------------------------------------------

    /** Returns Python's answer, or null if none comes in time: the question is withdrawn. The host's thread must not call this. */
    Object ask(String kind, List<?> fields, long timeoutMs) {
        String ticket = Long.toString(tickets.incrementAndGet());
        var answer = new CompletableFuture<Object>();
        open.put(ticket, answer);
        try {
            host.inbox.postEvent(kind, Stream.concat(Stream.of(ticket), fields.stream()).toList());
            return answer.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            host.inbox.withdraw(kind, ticket);
            return null;
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e); // nobody interrupts this thread, and no answer is an exception
        } finally {
            open.remove(ticket);
        }
    }

    /** Checks an administrator's change. Throws ConfigException if Python refuses the properties or does not answer in time. */
    void check(BrokerConfigs config) {
        String problem = (String) ask("validate", List.of(config.properties()), CHECK_MS);
        if (problem == null) {
            problem = "the Python host did not check the change within " + CHECK_MS + " ms; the old properties stay. Try again;"
                    + " if that goes on, a plugin hangs (runbook \"The host fell back\")";
        }
        if (!problem.isEmpty()) throw new ConfigException(problem);
    }

    /** Takes Python's answer; a late answer is dropped. */
    void answer(String ticket, Object value) {
        CompletableFuture<Object> waiting = open.get(ticket);
        if (waiting != null) waiting.complete(value);
    }

    // ---- what Java answers ------------------------------------------------------------------------------------

    /** Returns the answer to a question of these words, or {"error": why} if Python gives none. */
    String answer(String[] words) {
        return switch (words[0]) {
            case "state" -> Json.text(state());
            case "client" -> withState("client", dump.client(words[1], words[2]));
            case "uses" -> withState("uses", dump.uses(Integer.parseInt(words[1])));
            case "usage" -> withState("usage", dump.usage(Integer.parseInt(words[1])));
            case "holders" -> withState("holders", dump.holders(words[1]));
            case "marks" -> Json.text(dump.marks(Integer.parseInt(words[1])));
            case "gauges" -> Json.text(host.gauges.all().stream().map(gauge -> new Object[] {
                    gauge.type(), gauge.name(), gauge.attribute(), Double.toString(gauge.value().getAsDouble())}).toList());
            default -> {
                String text = (String) ask("question", List.of(words), PYTHON_MS);
                yield text != null ? text : error("the Python host did not answer within " + PYTHON_MS / 1_000 + " s");
            }
        };
    }

    private String withState(String what, Object answer) {
        return Json.text(Map.of("state", state(), what, answer));
    }

    static String error(String text) {
        return Json.text(Map.of("error", text));
    }

    private Map<String, Object> state() {
        var table = host.table;
        var factor = table.factorInForce;
        var lease = host.lease;
        var topics = host.topicQuotas;
        var broker = host.config.broker();
        Map<String, Double> floors = new TreeMap<>();
        Map<String, List<Object>> ofTypes = new TreeMap<>();
        for (ClientQuotaType type : ClientQuotaType.values()) {
            floors.put(type.name(), factor.floor(type));
            var own = factor.ofType(type.ordinal());
            if (own.value() < 1) ofTypes.put(type.name(), List.of(own.value(), own.cause()));
        }
        // These say where the log directories are, and how long a bucket of partition mutations saves up its rate.
        Map<String, String> properties = new TreeMap<>(broker);
        properties.keySet().retainAll(ASKED);
        return Json.object("pid", ProcessHandle.current().pid(), "node", broker.getOrDefault("node.id", ""),
                "version", Resources.versions().getProperty("quotahost", ""),
                "enforced", factor.isEnforced(), "shadow", factor.shadow(), "factor", factor.value(),
                "cause", lease.cause(factor.hostFactor().cause()), "limit_factor", factor.limitFactor(),
                "factor_types", factor.factored().stream().map(Enum::name).sorted().toList(), "floors", floors, "type_factors", ofTypes,
                "fence", Map.of("installed", Fence.installed(), "closed", Fence.closed(), "counts_only", Fence.inShadow()),
                "creation_refused", Fence.refusesCreations(),
                "topics", Map.of("threshold", topics.threshold(), "rate", topics.rate(), "over", topics.over(),
                        "in_shadow", topics.overInShadow()),
                "controller", KafkaBeans.activeController(), "properties", properties,
                "clients", table.size(), "clients_max", table.clientsMax(), "affected_topics", table.affectedTopics(),
                "held", new Json.Raw(held), "sources", host.gauges.names("FactorSource", "Answers", 1));
    }
}
