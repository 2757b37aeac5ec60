package org.quotahost.host;

import static java.util.Map.entry;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.internals.Keystores;
import org.quotahost.table.Answer;
import org.quotahost.table.QuotaTable;
import org.quotahost.table.QuotaTable.SlowedTopics;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Json;
import org.quotahost.util.Names;
import org.quotahost.util.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The calls that Python may make during one of its lives; a Python with another protocol version is refused at its first call.
 * Python declares the calls and their effects (quotahost.broker.host.protocol); the jar has the declaration as a resource.
 *
 * <p>A call is a list of its name and its arguments (Wire). Its answer is a list of a problem (or null) and a value (Json). No
 * exception reaches Python: JPype makes a Python class for each kind of exception on the thread that meets it first, which
 * crashes the JVM during its shutdown, or if two threads meet it together, as with a full heap. Python raises its own error.
 */
final class Calls {
    static final Properties DECLARATION = Resources.properties(Calls.class, "/META-INF/quotahost/host-protocol.properties");
    static final int VERSION = Integer.parseInt(DECLARATION.getProperty("version"));
    /** The most bytes of a call or of its answer. */
    static final int MOST = Integer.parseInt(DECLARATION.getProperty("most"));
    private static final Set<String> TOLD = Set.of(DECLARATION.getProperty("told").split(" "));

    /** Made in advance, since no text can be made when the heap is full. */
    static final byte[] FULL = refusal("the broker's heap is full"), TOO_LARGE = refusal("the answer is too large");

    private interface Handler {
        Object answer(Arguments arguments) throws Exception;
    }

    /** The arguments of a call. An argument that is missing or has the wrong type causes an exception. */
    private record Arguments(List<?> all) {
        @SuppressWarnings("unchecked")
        <T> T get(int at) {
            return (T) all.get(at);
        }

        int number(int at) {
            return Math.toIntExact((Long) all.get(at));
        }

        Arguments list(int at) {
            return new Arguments((List<?>) all.get(at));
        }

        String[] texts(int at) {
            return list(at).all.toArray(String[]::new);
        }

        /** Returns a text that many answers share, so that the table keeps it once for all its clients. */
        String shared(int at) {
            return ((String) all.get(at)).intern();
        }
    }

    record Request(String name, List<?> arguments) {
        /** Whether a caller waits for the answer. */
        boolean waits() {
            return !TOLD.contains(name);
        }
    }

    private final PythonHost host;
    private final Life life;
    /** The batch that was taken last; it has no clients after these were answered. */
    private Batch taken = Batch.EMPTY;
    /** The last publication's sets of client-ids, by their bytes: a supplier may return the same large set for every principal. */
    volatile Map<ByteBuffer, Set<String>> ids = Map.of();
    final Map<String, Handler> handlers;

    Calls(PythonHost host, Life life) {
        this.host = host;
        this.life = life;
        QuotaTable table = host.table;
        handlers = Map.ofEntries(
                act("hello", a -> hello(a.get(0), a.get(1))),
                entry("properties", a -> life.config.properties()),
                entry("started_with", a -> host.started.properties()),
                entry("broker", a -> host.config.broker()),
                act("starting", a -> life.starting.complete(null)),
                act("built", a -> life.awaitTurn()),
                act("ready", a -> host.ready(life, a.texts(0), a.texts(1))),
                act("refuse", a -> life.end(a.get(0))),
                entry("restarted", a -> life != host.lives.first),
                act("configure", this::configure),
                entry("take", a -> take(a.get(0))),
                act("ask_again", a -> table.askAgain(a.get(0), a.get(1))),
                act("ask_again_the_failed", a -> table.askAgainTheFailed()),
                act("publish", this::publish),
                entry("fence", a -> Fence.installed()),
                entry("keystores", a -> Keystores.read(a.texts(0))),
                act("connect", a -> host.admin.configure(a.texts(0))),
                entry("cluster", a -> host.admin.brokers()),
                entry("configs", a -> host.admin.configs(a.get(0), a.texts(1))),
                entry("log_dirs", a -> host.admin.logDirs(a.get(0))),
                entry("offline_log_dirs", a -> KafkaBeans.offlineLogDirs(a.texts(0), System.nanoTime())),
                entry("replicas", a -> KafkaBeans.replicas(a.texts(0), a.get(1), System.nanoTime())),
                entry("ask", a -> new Json.Raw(host.questions.answer(a.texts(0)))),
                act("answer", a -> host.questions.answer(a.get(0), a.get(1))),
                act("held", a -> host.questions.held = a.get(0)),
                act("gauge", a -> host.gauges.set(a.get(0), a.get(1), a.get(2), a.get(3))),
                act("count", a -> host.gauges.count(a.get(0), a.get(1), a.get(2), a.get(3))),
                act("forget", a -> host.gauges.forget(a.get(0), a.get(1))),
                entry("factor", a -> host.factor),
                act("set_factor", this::setFactor),
                act("set_budgets", this::setBudgets),
                act("set_factors_of_types", a -> table.factorsOfTypes(a.get(0), a.texts(1))),
                entry("load", a -> KafkaBeans.load(System.nanoTime())),
                act("exempt", a -> {
                    Exemptions.set(BrokerConfigs.pairs(a.texts(0)), a.texts(1), a.get(2));
                    table.forgetExempt();
                }),
                act("spare", a -> Exemptions.spare(a.texts(0))),
                act("log", a -> log(a.get(0), a.get(1), a.get(2))));
    }

    /** A call without a value. */
    private interface Act {
        void run(Arguments arguments) throws Exception;
    }

    private static Map.Entry<String, Handler> act(String name, Act act) {
        return entry(name, arguments -> {
            act.run(arguments);
            return null;
        });
    }

    // ---- messages --------------------------------------------------------------------------------------------

    byte[] call(byte[] message) {
        try {
            return answer(read(message));
        } catch (Throwable e) {
            return refusal(e);
        }
    }

    /** Reads a message. Throws RuntimeException if the message is not a call. */
    static Request read(byte[] message) {
        if (!(Wire.decode(message) instanceof List<?> call) || call.isEmpty()) throw new IllegalArgumentException("a message is not a call");
        return new Request((String) call.get(0), call.subList(1, call.size()));
    }

    /** Always returns an answer, whatever the call throws, since the calling thread would wait forever. */
    byte[] answer(Request request) {
        try {
            return answer(null, handlers.get(request.name).answer(new Arguments(request.arguments)));
        } catch (Throwable e) {
            return refusal(e);
        }
    }

    private static byte[] refusal(Throwable e) {
        try {
            return refusal(problem(e));
        } catch (Throwable again) {
            return FULL;
        }
    }

    static byte[] refusal(String text) {
        return answer(text, null);
    }

    private static byte[] answer(String problem, Object value) {
        return Json.text(Arrays.asList(problem, value)).getBytes(StandardCharsets.US_ASCII);
    }

    /** Returns the first cause in one line. Java's TimeoutException has no message. */
    static String problem(Throwable e) {
        if (e instanceof InterruptedException) Thread.currentThread().interrupt();
        Throwable cause = e;
        while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        String name = cause.getClass().getSimpleName(), message = cause.getMessage();
        return (message == null ? name : name + ": " + message).replaceAll("\\s+", " ");
    }

    // ---- calls that need more than one call of Java's --------------------------------------------------------

    private void hello(long version, String quotahost) {
        if (version == VERSION) return;
        String problem = "quotahost " + quotahost + " of " + BrokerConfigs.PREFIX + "python.executable speaks version " + version
                + " of the host's protocol, and this jar version " + VERSION + "; install the jar and quotahost of one release";
        life.end(problem);
        throw new IllegalArgumentException(problem);
    }

    /** Takes a batch without exempt clients. This renews the lease, since a Python that asks for work is alive. */
    private synchronized Object take(long timeoutMs) {
        host.lease.renew();
        taken.clients().forEach(host.inbox::askAgain); // Python has failed to answer them
        // At most a second, since the life after this one waits for this call.
        taken = Batch.EMPTY;
        if (!life.closing()) {
            taken = host.inbox.take(Math.min(timeoutMs, 1_000));
            taken.clients().removeIf(each -> Exemptions.reason(each.principal(), each.clientId()) != null);
        }
        host.lease.renew();
        return List.of(taken.clients().stream().map(each -> List.of(plain(each.principal()), plain(each.clientId()))).toList(),
                taken.events().stream().map(each -> List.of(each.kind(), each.fields())).toList(), life.closing());
    }

    /** Replaces half of a surrogate pair, which a principal builder may produce, by a question mark: a plugin could not write it. */
    private static String plain(String name) {
        return new String(name.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }

    private synchronized Batch answered() {
        Batch answered = taken;
        taken = Batch.EMPTY;
        return answered;
    }

    /**
     * Makes the next life ask for the clients that this ended life took and did not answer. This waits for a running call of a
     * process that is gone, since that call could take work that belongs to the next life.
     */
    void giveBack() {
        life.close();
        answered().clients().forEach(host.inbox::askAgain);
        ids = Map.of(); // Lives keeps the first life, and the table has the sets that are in use
    }

    private void configure(Arguments a) {
        Arguments table = a.list(0), tap = a.list(2), lease = a.list(4), topics = a.list(5);
        List<String> shadow = List.of(a.texts(1));
        synchronized (host.table) { // together: a partly changed rule could close the fence for a moment
            host.table.shadow(shadow);
            host.table.configureTap(tap.number(0), tap.get(1), tap.get(2));
            host.table.configure(table.number(0), table.get(1), table.get(2), table.texts(3), table.get(4), table.texts(5));
        }
        Fence.allowCreation(a.get(3));
        host.lease.configure(lease.get(0), lease.get(1));
        host.topicQuotas.configure(topics.get(0), topics.texts(1), topics.get(2), topics.texts(3), topics.get(4), shadow);
    }

    private void publish(Arguments a) {
        Map<ByteBuffer, Set<String>> before = ids, now = new HashMap<>();
        List<Set<String>> sets = a.list(2).all.stream().map(each -> ByteBuffer.wrap((byte[]) each))
                .map(list -> now.computeIfAbsent(list, any -> before.containsKey(list) ? before.get(list) : clientIds(list))).toList();
        if (!now.isEmpty()) ids = now;
        List<Answer> answers = a.list(1).all.stream().map(row -> answer(new Arguments((List<?>) row), sets)).toList();
        host.table.publish(answered(), a.get(0), answers);
    }

    private static Answer answer(Arguments row, List<Set<String>> ids) {
        Answer.Quota[] quotas = new Answer.Quota[QuotaTable.TYPES];
        for (int type = 0; type < quotas.length; type++) {
            Arguments given = row.list(0).list(type);
            Double rate = given.get(1);
            quotas[type] = new Answer.Quota(given.number(0), rate == null ? Double.NaN : rate, given.shared(2),
                    given.shared(3));
        }
        int distinct = row.number(1);
        return new Answer(quotas, distinct >= 0, distinct < 0 ? Set.of() : ids.get(distinct), row.get(2));
    }

    private static Set<String> clientIds(ByteBuffer list) {
        return ((List<?>) Wire.decode(list.array())).stream().map(String.class::cast).filter(Names::keeps).collect(Collectors.toSet());
    }

    private void setFactor(Arguments a) {
        boolean byTopics = a.get(2);
        host.table.factor(a.get(0), a.get(1), !byTopics ? null
                : new SlowedTopics(SlowedTopics.VOLUMES, a.get(0), Fence.CLOSED, a.texts(3), a.texts(4),
                        new HashSet<>(List.of(a.texts(5)))));
        Fence.diskFull(a.get(6));
        host.factor = a.all; // last: if the heap is full, none of it is in force, and the next Python sets it again
    }

    private void setBudgets(Arguments a) {
        List<SlowedTopics> budgets = new ArrayList<>();
        for (Object each : a.list(0).all) {
            Arguments b = new Arguments((List<?>) each);
            String[] topics = b.texts(4), places = new String[topics.length];
            Arrays.fill(places, b.get(2));
            double factor = b.get(1);
            budgets.add(new SlowedTopics(b.get(0), factor, Fence.refusal(b.get(3)), topics, places,
                    factor <= 0 ? new HashSet<>(List.of(topics)) : Set.of()));
        }
        host.table.budgets(budgets);
    }

    /** Writes a log record of Python's to the broker's log, under the same logger name. Python's levels: 10, 20, 30, 40. */
    private static void log(String logger, long level, String message) {
        Logger log = LoggerFactory.getLogger(logger);
        if (level >= 40) log.error("{}", message);
        else if (level >= 30) log.warn("{}", message);
        else if (level >= 20) log.info("{}", message);
        else log.debug("{}", message);
    }
}
