package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import org.quotahost.cluster.ClusterAdmin;
import org.quotahost.cluster.LibrdkafkaConfig;
import org.quotahost.cluster.OfflineLogDirs;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.metrics.Gauges;
import org.quotahost.metrics.PluginGauges;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.python.StartException;
import org.quotahost.table.QuotaTable;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.topics.TopicWatch;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.NodeProperty;
import org.quotahost.util.Reply;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One running Python host for all callbacks of this JVM: a combined node has two (broker and controller). The
 * first to come starts it, the last to go closes it; the interpreter underneath stays (Interpreter).
 *
 * <p>Public methods are what Python calls. Java never calls Python.
 */
public final class PythonHost {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** Python may recurse deeply in C (regular expressions, pydantic). */
    private static final long STACK_BYTES = 16L << 20;
    private static final long CLOSE_MS = 4_000;
    private static final long LONGEST_PAUSE_MS = 30_000;
    private static volatile PythonHost current;

    private final Inbox inbox = new Inbox();
    private final QuotaTable table = new QuotaTable(inbox);
    private final Lease lease = new Lease(System::nanoTime, table.factorInForce()::fallback);
    private final Gauges gauges = new Gauges();
    private final Watch watch = new Watch(lease, table);
    private final TopicQuotas topicQuotas = new TopicQuotas();
    private final TopicWatch topicWatch = new TopicWatch(topicQuotas);
    private final Reconfiguration reconfiguration = new Reconfiguration(inbox);
    private final Map<String, LongAdder> pluginErrors = new ConcurrentHashMap<>();
    private final LongAdder restarts = new LongAdder();
    private final PluginGauges pluginGauges = new PluginGauges(gauges);
    private ClusterAdmin admin;
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final CountDownLatch closing = new CountDownLatch(1);
    private volatile HostConfig config;
    private volatile long startDeadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    private Thread thread;
    private int references;

    private PythonHost(HostConfig config) {
        this.config = config;
    }

    // ---- the callbacks ---------------------------------------------------------------------------------------

    /** The running host, started if there is none. Throws StartException, having left nothing behind. */
    public static synchronized PythonHost acquire(HostConfig config) {
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
        } else if (!current.config.equals(config)) {
            current.reconfigure(config); // the broker's own dynamic properties, which its controller hasn't seen yet
        }
        current.references++;
        return current;
    }

    public static void release(PythonHost host) {
        synchronized (PythonHost.class) {
            if (--host.references > 0) return;
            if (current == host) current = null;
        }
        host.close();
    }

    public QuotaTable tableForCallback() {
        return table;
    }

    public Inbox inboxForCallback() {
        return inbox;
    }

    public Gauges gaugesForCallback() {
        return gauges;
    }

    public Reconfiguration reconfiguration() {
        return reconfiguration;
    }

    /** Has the host check a new configuration and take it over. Throws StartException with its reason. */
    void reconfigure(HostConfig next) {
        reconfiguration.check(next);
        changed(next);
    }

    /** Has the host take over a configuration that it has checked. */
    public void changed(HostConfig next) {
        config = next;
        reconfiguration.apply(next);
    }

    // ---- Python ----------------------------------------------------------------------------------------------

    /** Without the lock, which acquire() holds while it waits for the host that asks this. */
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

    /** Waits for work, and is the sign of life that renews the lease. */
    public Batch take(long timeoutMs) {
        lease.renew();
        Batch batch = inbox.take(timeoutMs);
        lease.renew();
        return batch;
    }

    public boolean closing() {
        return closing.getCount() == 0;
    }

    public String[] properties() {
        return HostConfig.flat(config.properties());
    }

    public String[] broker() {
        return HostConfig.flat(config.broker());
    }

    /** The settings are read; the broker's start waits this much longer for the plugins. */
    public void starting(long timeoutMs) {
        startDeadline = System.nanoTime() + timeoutMs * 1_000_000;
    }

    /** The plugins stand; these properties can be changed live. */
    public void ready(String[] reconfigurable) {
        reconfiguration.names(List.of(reconfigurable));
        ready.complete(null);
    }

    /** The configuration can't be used; the sentence is the operator's. */
    public void refuse(String problem) {
        ready.completeExceptionally(new StartException(problem));
    }

    public void configureInbox(int max) {
        inbox.max(max);
    }

    public void configureLease(long validityMs, String fallbackAction) {
        lease.configure(validityMs, fallbackAction);
    }

    /** The answer to a question that the shim posted: null for yes, or why not. */
    public void verdict(String ticket, String problem) {
        reconfiguration.verdict(ticket, problem);
    }

    public void log(String logger, int level, String message) {
        HostLog.log(logger, level, message);
    }

    /** Makes the plugin's error counter visible, at 0. */
    public void plugin(String name) {
        pluginErrors.computeIfAbsent(name, n -> {
            LongAdder errors = new LongAdder();
            gauges.add("Plugin", n, "Errors", errors::sum);
            return errors;
        });
    }

    public void pluginFailed(String name) {
        plugin(name);
        pluginErrors.get(name).increment();
    }

    /** Numbers of plugins' own. */
    public PluginGauges pluginGauges() {
        return pluginGauges;
    }

    /** What the cluster says of its brokers; one for all plugins. */
    public synchronized ClusterAdmin admin() {
        if (admin == null) admin = new ClusterAdmin(config.client(), "quotahost-" + config.broker().getOrDefault("node.id", "-1"));
        return admin;
    }

    /** The configuration of a librdkafka client as this broker itself; names and values alternate; secrets included. */
    public String[] clientConfig() {
        return Reply.lines(() -> HostConfig.flat(LibrdkafkaConfig.librdkafka(config.client())));
    }

    /** librdkafka's form of a Java client's configuration; names and values alternate in both. */
    public String[] librdkafka(String[] java) {
        Map<String, Object> config = new java.util.HashMap<>();
        for (int i = 0; i < java.length; i += 2) config.put(java[i], java[i + 1]);
        return Reply.lines(() -> HostConfig.flat(LibrdkafkaConfig.librdkafka(config)));
    }

    /** The log directories that Kafka itself has given up. */
    public String[] offlineLogDirs() {
        return OfflineLogDirs.now();
    }

    /** Every gauge as type, name, attribute and, in the same order, its value. */
    public String[] gaugeNames() {
        return gauges.all().stream().flatMap(g -> List.of(g.type(), g.name(), g.attribute()).stream()).toArray(String[]::new);
    }

    public double[] gaugeValues() {
        return gauges.all().stream().mapToDouble(g -> g.value().getAsDouble()).toArray();
    }

    // ---- its life --------------------------------------------------------------------------------------------

    private void open() {
        PythonEnvironment environment = PythonEnvironment.of(config.executable());
        StandardGauges.add(gauges, table, inbox, lease, topicQuotas, restarts::sum);
        Fence.onInstall(table.factorInForce()::move);
        thread = new Thread(null, () -> live(environment), "quotahost-host", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        awaitReady();
        watch.start();
        topicWatch.start();
        NodeProperty.set(config.broker().getOrDefault("node.id", "-1"));
    }

    private void awaitReady() {
        try {
            while (true) {
                long left = startDeadline - System.nanoTime();
                try {
                    ready.get(Math.max(1, Math.min(left, 100_000_000)), TimeUnit.NANOSECONDS);
                    return;
                } catch (TimeoutException e) {
                    if (left <= 0) {
                        throw new StartException("the Python host was not ready in time (" + BrokerConfigs.PREFIX
                                + "start.timeout); a plugin hangs while it is imported or built. See the log above");
                    }
                }
            }
        } catch (ExecutionException e) {
            if (e.getCause() instanceof StartException problem) throw problem;
            throw new StartException("the Python host failed to start: " + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StartException("interrupted while the Python host started", e);
        }
    }

    private void live(PythonEnvironment environment) {
        long pause = 500;
        try {
            Interpreter.start(environment);
            while (!closing()) {
                String problem = Interpreter.serve();
                if (!ready.isDone()) refuse(problem == null ? "the Python host ended at once" : problem);
                if (closing() || ready.isCompletedExceptionally()) return;
                restarts.increment();
                LOG.error("The Python host ended; it starts again in {} ms. {}", pause, problem == null ? "" : problem);
                if (closing.await(pause, TimeUnit.MILLISECONDS)) return;
                pause = Math.min(LONGEST_PAUSE_MS, 2 * pause);
                inbox.replay();
            }
        } catch (StartException e) {
            ready.completeExceptionally(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable e) {
            ready.completeExceptionally(e);
            LOG.error("The Python host's thread ends; fallback.action will hold", e);
        }
    }

    private void close() {
        NodeProperty.clear();
        closing.countDown();
        inbox.post("closing", List.of());
        watch.close();
        topicWatch.close();
        try {
            if (thread != null) thread.join(CLOSE_MS);
            if (thread != null && thread.isAlive()) LOG.warn("The Python host did not end within {} ms: a plugin hangs", CLOSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        synchronized (this) {
            if (admin != null) admin.close();
        }
        gauges.close();
    }
}
