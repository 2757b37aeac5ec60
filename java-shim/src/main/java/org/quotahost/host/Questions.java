package org.quotahost.host;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.table.Dump;
import org.quotahost.table.FactorInForce;
import org.quotahost.table.QuotaTable;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Json;

/**
 * Who asks about this broker, and who answers.
 *
 * <p>Operators (AdminSocket) and Python ask for {@code state}, {@code client USER CLIENT-ID}, {@code uses MOST}, {@code usage
 * MOST}, {@code holders TYPE}, {@code marks MOST} and {@code gauges}. Java answers these in JSON, also while Python hangs: it tells
 * what it has, and Python words it (quotahost.broker.host.dump).
 *
 * <p>All else only Python can answer: an operator's other questions, JMX's table of clients, and whether new properties are
 * valid. Java never calls Python, so such a question goes to it as an event with a ticket, its answer comes back with the
 * same one (answer), and who asks waits. A request of a client never waits. Neither does Kafka when it applies what is
 * stored: Python takes it over or keeps the properties that it has, and says so in the log.
 */
final class Questions {
    /** How long an operator's question to Python may take, which may ask the cluster. */
    private static final long PYTHON_MS = 8_000;
    private static final long CHECK_MS = 2_000;

    private final PythonHost host;
    private final Dump dump;
    private final AtomicLong tickets = new AtomicLong();
    /** The questions that somebody waits for, by ticket. */
    private final Map<Long, CompletableFuture<String>> open = new ConcurrentHashMap<>();
    /** The properties that Kafka has applied and Python has not judged yet, by ticket. */
    private final ConcurrentSkipListMap<Long, BrokerConfigs> applied = new ConcurrentSkipListMap<>();
    /** The properties that Python has taken over last, with which its next life starts. */
    volatile BrokerConfigs confirmed;
    /** By which rule in shadow scopes would be held back, as Python has told last. */
    volatile String held = "{}";

    /** @param start the properties of the start */
    Questions(PythonHost host, BrokerConfigs start) {
        this.host = host;
        this.dump = new Dump(host.table);
        this.confirmed = start;
    }

    // ---- what Python answers ----------------------------------------------------------------------------------

    /**
     * Asks Python, and waits for the answer; any thread but the host's.
     *
     * @param kind the event's kind, by which Python knows what is asked
     * @param fields what follows the ticket
     * @return the answer, or null if none came in time; a host that is silent that long does not get the question later
     */
    String ask(String kind, List<String> fields, long timeoutMs) {
        Long ticket = tickets.incrementAndGet();
        CompletableFuture<String> answer = new CompletableFuture<>();
        open.put(ticket, answer);
        try {
            post(kind, ticket, fields);
            return answer.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        } catch (TimeoutException | ExecutionException e) {
            return null;
        } finally {
            open.remove(ticket);
            if (!answer.isDone()) host.inbox.withdraw(kind, ticket.toString());
        }
    }

    private void post(String kind, Long ticket, List<String> fields) {
        host.inbox.postEvent(kind, Stream.concat(Stream.of(ticket.toString()), fields.stream()).toList());
    }

    /** For an administrator's request: ConfigException if Python refuses the properties or doesn't answer in time. */
    void check(BrokerConfigs config) {
        String problem = ask("validate", BrokerConfigs.flat(config.properties()), CHECK_MS);
        if (problem == null) {
            problem = "the Python host did not check the change within " + CHECK_MS + " ms; the old properties stay. Try again";
        }
        if (!problem.isEmpty()) throw new ConfigException(problem);
    }

    /** Has Python take over what Kafka applies. It waits for nothing. */
    void apply(BrokerConfigs config) {
        Long ticket = tickets.incrementAndGet();
        applied.put(ticket, config);
        post("reconfigure", ticket, BrokerConfigs.flat(config.properties()));
    }

    /**
     * Python's answer; one that comes too late is for nobody.
     *
     * @param text of properties why they are refused, "" if they are not
     */
    void answer(String ticket, String text) {
        Long number = Long.valueOf(ticket);
        CompletableFuture<String> waiting = open.get(number);
        if (waiting != null) waiting.complete(text);
        BrokerConfigs judged = applied.get(number);
        if (judged == null) return;
        applied.headMap(number, true).clear(); // Python takes events in order, so earlier ones are settled, too
        if (text.isEmpty()) confirmed = judged;
    }

    // ---- what Java answers ------------------------------------------------------------------------------------

    /** The answer to a question in words; a failure is {"error": why}, and never an exception. */
    String answer(String[] words) {
        try {
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
                    String text = ask("question", List.of(words), PYTHON_MS);
                    yield text != null ? text : error("the Python host did not answer within " + PYTHON_MS / 1_000 + " s");
                }
            };
        } catch (RuntimeException e) {
            return error(e.toString());
        }
    }

    private String withState(String what, Object answer) {
        return Json.text(Map.of("state", state(), what, answer));
    }

    static String error(String text) {
        return Json.text(Map.of("error", text));
    }

    private Map<String, Object> state() {
        QuotaTable table = host.table;
        FactorInForce factor = table.factorInForce;
        Lease lease = host.lease;
        TopicQuotas topics = host.topicQuotas;
        Map<String, String> broker = host.config().broker();
        boolean fallback = lease.expired;
        Map<String, Double> floors = new TreeMap<>();
        Map<String, List<Object>> ofTypes = new TreeMap<>();
        for (ClientQuotaType type : ClientQuotaType.values()) {
            floors.put(type.name(), factor.floor(type));
            FactorInForce.Factor own = factor.ofType(type.ordinal());
            if (own.value() < 1) ofTypes.put(type.name(), List.of(own.value(), own.cause()));
        }
        // For how long a bucket of partition mutations saves up its rate; by Kafka's defaults 11 samples of 1 s.
        long mutationSeconds = Long.parseLong(broker.getOrDefault("controller.quota.window.num", "11"))
                * Long.parseLong(broker.getOrDefault("controller.quota.window.size.seconds", "1"));
        return Json.object("pid", ProcessHandle.current().pid(), "node", broker.getOrDefault("node.id", ""),
                "version", PythonEnvironment.built().getProperty("quotahost", ""),
                "enforced", factor.isEnforced(), "shadow", factor.shadow(), "factor", factor.value(),
                "cause", fallback ? lease.cause() : factor.hostFactor().cause(),
                "host_factor", factor.hostFactor().value(), "limit_factor", factor.limitFactor(),
                "fallback", fallback, "silent_ms", Math.round(lease.ageSeconds() * 1_000),
                "factor_types", factor.factored().stream().map(Enum::name).sorted().toList(), "floors", floors, "type_factors", ofTypes,
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
