package org.quotahost.host;

import static org.quotahost.table.QuotaTable.BEAT_MS;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;
import org.quotahost.inbox.Inbox;
import org.quotahost.internals.Internals;
import org.quotahost.metrics.ClientTable;
import org.quotahost.metrics.Gauges;
import org.quotahost.table.QuotaTable;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Schedule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The running Python host, one for all callbacks of this JVM: it takes Kafka's questions and reports, and ends within 4 s. A
 * combined node has two callbacks (broker and controller): the first one acquires a new host, and the last one to release it
 * closes it. Java never calls Python: Python calls Java for work, and for all else (Calls).
 */
public final class PythonHost {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** How long running work may take to end: a stopping broker waits no longer. */
    private static final long CLOSE_MS = 4_000;
    /** How long a reader of JMX waits for the table of clients. */
    private static final long TABLE_MS = 1_000;
    private static PythonHost current;
    /** The calls of the Python that runs in this process. */
    static volatile Calls calls;

    public final Inbox inbox = new Inbox();
    public final QuotaTable table = new QuotaTable(inbox);
    public final Gauges gauges = new Gauges();
    final Lease lease = new Lease(System::nanoTime, table::fallback);
    final TopicQuotas topicQuotas = new TopicQuotas();
    final Lives lives = new Lives(this);
    final Questions questions;
    /** One client for all plugins. */
    final ClusterAdmin admin;
    private final AdminSocket socket;
    private final Schedule watch = new Schedule("quotahost-watch"), topicSchedule = new Schedule("quotahost-topics"),
            log = new Schedule("quotahost-log");
    /** The properties at the broker's start; those that are not live keep these values. */
    final BrokerConfigs started;
    /** Kafka's current properties; each Life knows which of them it has put into force. */
    volatile BrokerConfigs config;
    /** The arguments of the last call set_factor, for the next Python. */
    volatile List<?> factor = List.of(1.0, "", false, List.of(), List.of(), List.of(), false);
    private volatile Set<String> reconfigurable = Set.of();
    /** The number of callbacks that use this host; guarded by the lock of this class. */
    private int references;

    PythonHost(BrokerConfigs config) {
        this.started = config;
        this.config = config;
        String node = config.broker().getOrDefault("node.id", "-1");
        questions = new Questions(this);
        admin = new ClusterAdmin("quotahost-" + node);
        socket = new AdminSocket(node, questions::answer);
    }

    // ---- the callbacks ---------------------------------------------------------------------------------------

    /** Returns the running host. If there is none, it starts one, or throws ConfigException and leaves nothing behind. */
    public static synchronized PythonHost acquire(BrokerConfigs config) {
        if (current == null) {
            PythonHost host = new PythonHost(config);
            try {
                host.open();
            } catch (Throwable e) { // also for a full heap
                host.close();
                throw e;
            }
            current = host;
        }
        current.references++;
        return current;
    }

    /** Releases the host. A new acquire() waits meanwhile, since the end of this host removes MBeans, socket and fence. */
    public static synchronized void release(PythonHost host) {
        if (--host.references > 0) return;
        current = null;
        host.close();
    }

    /** Returns the reconfigurable properties, and the keystores with which plugins log in; empty until the host is ready. */
    public Set<String> reconfigurable() {
        return reconfigurable;
    }

    /** Checks an administrator's change. Throws ConfigException if the host refuses the properties or does not answer in time. */
    public void check(BrokerConfigs next) {
        // A change of keystores alone is not checked: a hanging Python must not keep a broker from new certificates.
        if (!next.properties().equals(config.properties())) lives.check(next);
    }

    /**
     * Makes the host take over what Kafka applies. Whatever is wrong, this neither throws nor waits: after an exception Kafka
     * would drop its own dynamic configs.
     */
    public void apply(Map<String, ?> configs) {
        try {
            BrokerConfigs next = BrokerConfigs.of(configs);
            synchronized (lives) { // the host thread compares them with what serves
                lives.apply(next);
                config = next;
            }
        } catch (Throwable e) {
            gauges.set("Host", "", "ConfigRefused", 1);
            LOG.error("The new properties cannot be read; the old ones stay in force", e);
        }
    }

    // ---- Python ----------------------------------------------------------------------------------------------

    /** Answers a call of the Python in this process, on any of its threads, also while the host closes. */
    public static byte[] call(byte[] message) {
        return calls.call(message);
    }

    /** Notes that Python has put properties into force, those of its start or of a change. */
    void ready(Life life, String[] names, String[] given) {
        reconfigurable = Stream.concat(Stream.of(names), config.keystores()).collect(Collectors.toUnmodifiableSet());
        life.inForce = new BrokerConfigs(BrokerConfigs.pairs(given), config.broker());
        lease.renew(); // the start may have taken longer than validity
        life.ready.complete(null);
    }

    // ---- start and end ---------------------------------------------------------------------------------------

    private void open() {
        gauges.set("Host", "", "EventErrors", 0); // only here, since the number stays over a restart of Python
        StandardGauges.add(this);
        gauges.table("Clients", "Uses", () -> ClientTable.of(questions.ask("clients-table", List.of(), TABLE_MS)));
        lives.start();
        watch();
        log();
        topicSchedule.every(TopicQuotas.NEAR_MS,
                "reading topic meters (topic quotas turn nothing back until a reading succeeds)", topicQuotas::turn);
        socket.start();
    }

    /** Starts all work that must go on while Python hangs. Each part is a turn of its own, so that a defect in one spares others. */
    private void watch() {
        long startedAt = System.nanoTime();
        watch.every(Lease.CHECK_MS, "the check of the lease", lease::check);
        watch.every(BEAT_MS, "the table's clock and the move of the limits",
                () -> table.beat(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedAt)));
        watch.every(BEAT_MS, "the eviction of silent clients", table::evict);
        watch.every(1_000, "forgetting clients that were turned back", () -> TurnedBack.forgetOld(System.nanoTime()));
        watch.every(1_000, "adding new gauges", () -> StandardGauges.addNew(this));
    }

    /** Starts the logging for watch and fence, on a thread of its own, since the broker's log may wait, for a disk for example. */
    private void log() {
        log.every(BEAT_MS, "the log of the lease", lease::log);
        log.every(BEAT_MS, "the log of the fence", Fence::logState);
        log.every(BEAT_MS, "the log of refused creations", Fence::logRefusals);
        log.every(BEAT_MS, "the log of a full table", table::logFull);
        log.every(BEAT_MS, "the log of topic quotas", topicQuotas::log);
        log.every(BEAT_MS, "the log of missing internals", Internals::log);
        log.every(BEAT_MS, "the log of numbers that are left out", gauges::log);
    }

    private void close() {
        // Everything is told to end before anything is waited for, so that a stopping broker waits only for the slowest.
        lives.end();
        socket.close();
        watch.end();
        log.end();
        topicSchedule.end();
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(CLOSE_MS);
        lives.awaitEnd(CLOSE_MS);
        watch.close(until);
        if (topicSchedule.close(until)) topicQuotas.close();
        admin.end();
        gauges.close();
        Fence.uninstall();
    }
}
