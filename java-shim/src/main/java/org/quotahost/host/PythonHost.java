package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.internals.Keystores;
import org.quotahost.metrics.ClientTable;
import org.quotahost.metrics.Gauges;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.table.QuotaTable;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Reply;
import org.quotahost.util.Schedule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The running Python host, one for all callbacks of this JVM.
 *
 * <p>A combined node has two callbacks (broker and controller). The first acquires a new host, which starts, and the
 * last one to release it closes it; the interpreter stays (Interpreter). Python runs on a thread of the host's
 * (HostThread).
 *
 * <p>Java never calls Python. Python asks for work with take() and calls the public methods of this class ({@code
 * quotahost.host.bridge}), and those of the objects that it gets from here.
 */
public final class PythonHost {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** How long Python, and what else goes on, may take to end: a broker that stops waits no longer. */
    private static final long CLOSE_MS = 4_000;
    /** How long an operator's question to Python may take, which may ask the cluster. */
    private static final long ANSWER_MS = 8_000;
    /** How long a reader of JMX waits for the table of clients. */
    private static final long TABLE_MS = 1_000;
    private static volatile PythonHost current;

    private final Inbox inbox = new Inbox();
    private final QuotaTable table = new QuotaTable(inbox);
    private final Lease lease = new Lease(System::nanoTime, table::fallback);
    private final Gauges gauges = new Gauges();
    private final TopicQuotas topicQuotas = new TopicQuotas();
    private final Watch watch = new Watch(lease, table, StandardGauges.news(gauges, topicQuotas));
    private final Schedule topicSchedule = new Schedule("quotahost-topics");
    private final HostQuestions hostQuestions = new HostQuestions(inbox);
    private final Reconfiguration reconfiguration;
    private final Map<String, LongAdder> pluginErrors = new ConcurrentHashMap<>();
    private final ClusterAdmin admin;
    private final HostThread thread = new HostThread(inbox);
    private final Questions questions;
    private final AdminSocket socket;
    /** As Kafka has it now; which of its properties are in force, Reconfiguration knows. */
    private volatile BrokerConfigs config;
    private volatile boolean reconfigured;
    /** How many callbacks use it; under the lock of this class. */
    private int references;

    private PythonHost(BrokerConfigs config) {
        this.config = config;
        reconfiguration = new Reconfiguration(hostQuestions, config.properties());
        questions = new Questions(table, lease, topicQuotas, gauges, config.broker(), this::askPython);
        admin = new ClusterAdmin("quotahost-" + nodeId());
        socket = new AdminSocket(nodeId(), this::ask);
    }

    // ---- the callbacks ---------------------------------------------------------------------------------------

    /**
     * The running host; it starts one if there is none. If that fails it throws StartException and leaves nothing
     * behind.
     */
    public static synchronized PythonHost acquire(BrokerConfigs config) {
        if (current == null) {
            PythonHost host = new PythonHost(config);
            current = host;
            try {
                host.open();
            } catch (RuntimeException e) {
                current = null;
                host.close();
                throw e;
            }
        } else if (!current.reconfigured && !current.config.equals(config)) {
            // One of the node's two roles may know of a change first. What Kafka applied since the start is newer.
            current.take(config);
        }
        current.references++;
        return current;
    }

    /** Gives up what acquire() gave; the last callback to do so closes the host. */
    public static void release(PythonHost host) {
        synchronized (PythonHost.class) {
            if (--host.references > 0) return;
            if (current == host) current = null;
        }
        host.close();
    }

    /** All numbers that the shim shows; Python and its plugins set theirs there. */
    public Gauges gauges() {
        return gauges;
    }

    public Reconfiguration reconfiguration() {
        return reconfiguration;
    }

    /**
     * Has the host take over what Kafka applies. Whatever is wrong with it, Kafka must not hear of it, since it would
     * drop its own dynamic configs: so this neither throws nor waits.
     */
    public void apply(Map<String, ?> configs) {
        try {
            take(BrokerConfigs.of(configs));
        } catch (Throwable e) {
            gauges.set("Host", "", "ConfigRefused", 1);
            LOG.error("The new properties cannot be read, and the old ones stay", e);
        }
    }

    private void take(BrokerConfigs next) {
        reconfigured = true;
        config = next;
        reconfiguration.apply(next);
    }

    /** Kafka's news of the brokers that are alive. */
    public void cluster(String clusterId, List<String> brokers) {
        inbox.cluster(clusterId, brokers);
    }

    // ---- Python ----------------------------------------------------------------------------------------------

    /**
     * The host that starts or runs. It takes no lock: acquire() has it while it waits for the Python that calls this.
     */
    public static PythonHost current() {
        return current;
    }

    public QuotaTable table() {
        return table;
    }

    public Inbox inbox() {
        return inbox;
    }

    public TopicQuotas topicQuotas() {
        return topicQuotas;
    }

    /** Waits for work, at most timeoutMs. It renews the lease, since a Python that asks for work is alive. */
    public Batch take(long timeoutMs) {
        lease.renew();
        Batch batch = inbox.take(timeoutMs);
        lease.renew();
        return batch;
    }

    /** Whether the Python host has to end. */
    public boolean closing() {
        return thread.closing();
    }

    /** The properties of quotahost that were confirmed last; names and values alternate. */
    public String[] properties() {
        return BrokerConfigs.flat(reconfiguration.confirmed());
    }

    /** Whether the broker's start is over: the Python host that asks is not the first of this JVM. */
    public boolean restarted() {
        return thread.started();
    }

    /** Some of the broker's own properties, secrets among them; names and values alternate. */
    public String[] broker() {
        return BrokerConfigs.flat(config.broker());
    }

    /** Python has read the settings; the broker's start waits this much longer for the plugins (start.timeout). */
    public void starting(long timeoutMs) {
        thread.starting(timeoutMs);
    }

    /**
     * The plugins are built, and the broker's start goes on; these properties may change while it runs. Python calls it
     * again when other plugins have brought other properties.
     */
    public void ready(String[] reconfigurable) {
        reconfiguration.names(List.of(reconfigurable));
        thread.ready();
    }

    /** The configuration cannot be used: the broker's start ends, a later start of the host alone is tried again. */
    public void refuse(String problem) {
        thread.refuse(problem);
    }

    /** @param max how many unknown clients may wait (inbox.max) */
    public void configureInbox(int max) {
        inbox.max(max);
    }

    /** @param fallbackAction PAUSE or OPEN */
    public void configureLease(long validityMs, String fallbackAction) {
        lease.configure(validityMs, fallbackAction);
    }

    /** Python's verdict on properties that it was to check: null to accept them, or why not. */
    public void verdict(String ticket, String problem) {
        reconfiguration.verdict(ticket, problem);
    }

    /** Sets the clients that no quota and no fence holds up (Exemptions.set). */
    public void exempt(String[] principals, String[] clientIds, String internalClientIds) {
        Fence.exempt(principals, clientIds, internalClientIds);
    }

    /** Sets the topics that the fence never protects (Exemptions.spare). */
    public void spare(String[] topics) {
        Fence.spare(topics);
    }

    /** Sets whether topics and partitions may be created in a PAUSE (pause.creation). */
    public void allowCreation(boolean on) {
        Creation.allow(on);
    }

    /** Whether there is a fence in this JVM, which turns requests back in a PAUSE. */
    public boolean fenceInstalled() {
        return Fence.installed();
    }

    /** Python's answer to the question with this ticket. */
    public void answer(String ticket, String text) {
        hostQuestions.answer(ticket, text);
    }

    /**
     * Writes a log record of Python's to the broker's log, under the same logger's name.
     *
     * @param level Python's: 10 debug, 20 info, 30 warning, 40 and above error
     */
    public void log(String logger, int level, String message) {
        Logger log = LoggerFactory.getLogger(logger);
        if (level >= 40) log.error("{}", message);
        else if (level >= 30) log.warn("{}", message);
        else if (level >= 20) log.info("{}", message);
        else log.debug("{}", message);
    }

    /** Makes the gauge that counts a plugin's errors, at 0. */
    public void plugin(String name) {
        pluginErrors.computeIfAbsent(name, n -> {
            LongAdder errors = new LongAdder();
            gauges.add("Plugin", n, "Errors", errors::sum);
            return errors;
        });
    }

    /** Adds one to a plugin's errors. */
    public void pluginFailed(String name) {
        plugin(name);
        pluginErrors.get(name).increment();
    }

    /** The Admin client, one for all plugins; Python tells it how to connect. */
    public ClusterAdmin admin() {
        return admin;
    }

    /** A Reply with what the keystores of these properties hold (Keystores.read). */
    public String[] keystores(String[] ssl) {
        return Reply.lines(() -> Keystores.read(ssl));
    }

    /** The log directories that Kafka itself has taken out of service. */
    public String[] offlineLogDirs() {
        return KafkaBeans.offlineLogDirs();
    }

    /** The answer to a question about this broker (Questions), in JSON. */
    public String ask(String[] words) {
        return questions.answer(words);
    }

    /** Keeps what the host says of rules in shadow, for those who ask for the state. */
    public void held(String json) {
        questions.held(json);
    }

    /** What Java does not know; a failure is {"error": why}. */
    private String askPython(String[] words) {
        String text = hostQuestions.ask("question", List.of(words), ANSWER_MS);
        return text != null ? text : "{\"error\": \"the Python host did not answer within " + ANSWER_MS / 1_000 + " s\"}";
    }

    // ---- start and end ---------------------------------------------------------------------------------------

    private void open() {
        PythonEnvironment environment = PythonEnvironment.of(config.executable());
        gauges.set("Host", "", "ConfigRefused", 0); // only here: it stays over a restart of Python
        StandardGauges.add(gauges, table, inbox, lease, topicQuotas, thread::restarts);
        gauges.table("Clients", "Uses", new ClientTable(() -> hostQuestions.ask("clients-table", List.of(), TABLE_MS))::read);
        Fence.onInstall(table::fenceInstalled);
        thread.start(environment);
        watch.start();
        topicSchedule.add("the reading of the topics' meters", TopicQuotas.IDLE_MS, topicQuotas::turn);
        socket.start();
    }

    private String nodeId() {
        return config.broker().getOrDefault("node.id", "-1");
    }

    private void close() {
        // All are told to end before one is waited for, so that a broker that stops waits no longer than for the slowest.
        thread.end();
        socket.close();
        watch.end();
        topicSchedule.end();
        long until = System.nanoTime() + CLOSE_MS * 1_000_000;
        thread.awaitEnd(CLOSE_MS);
        watch.awaitEnd(leftMs(until));
        if (topicSchedule.close(leftMs(until))) topicQuotas.close();
        admin.close();
        gauges.close();
    }

    private static long leftMs(long until) {
        return Math.max(0, TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime()));
    }
}
