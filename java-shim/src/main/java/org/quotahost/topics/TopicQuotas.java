package org.quotahost.topics;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.quotahost.fence.Fence;
import org.quotahost.util.HeldBacks;
import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Quotas of topics ("Broker side quota (V1)"): while this broker takes in more than is expected of it, the fence
 * turns back produce requests to those topics that take in more than is expected of them.
 *
 * <p>They are the fence's business, since no ClientQuotaCallback sees a topic. Python configures them, the thread of
 * TopicWatch reads Kafka's meters and hands the fence the topics, and request threads read what the fence has. The
 * meters count a request once it is appended, so a request that is turned back does not count.
 */
public final class TopicQuotas {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.topics");
    private static final long LIST_NANOS = 5_000_000_000L;
    /** How many topics of which requests are turned back the log names in a minute. */
    static final int TOPICS_PER_MINUTE = 20;
    /** The beginning of the names of the rules in shadow that are this class's business. */
    private static final String RULES = "topic";

    private final TopicMeters meters = new TopicMeters();
    /** What Python has configured last, null for no topic quotas. */
    private volatile Configuration configured;
    private volatile double totalRate;
    private volatile double share;
    /** What the fence has. */
    private volatile TopicsOverThreshold overThreshold;
    private final CarriedRate total = new CarriedRate();
    private final Map<String, TopicUse> topics = new HashMap<>();
    /** What the last reading went by. */
    private Configuration applied;
    private boolean suspended;
    private final LineLimit suspensions = new LineLimit(1);
    /** Hundreds of topics may be over at once; the gauge Over and explain name all of them. */
    private final LineLimit periods = new LineLimit(TOPICS_PER_MINUTE);
    private boolean warnedOfNoFence;
    private final HeldBacks heldBacks;
    private long listedAt;

    private record Configuration(TopicThresholds thresholds, RuntimeException error) {}

    public TopicQuotas() {
        this(new HeldBacks());
    }

    /** @param heldBacks the counters of rules in shadow */
    public TopicQuotas(HeldBacks heldBacks) {
        this.heldBacks = heldBacks;
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /** Replaces the thresholds by some that are all enforced. */
    public void configure(double bytesPerSecond, String[] names, double[] rates, String[] spared, String error) {
        configure(bytesPerSecond, names, rates, spared, error, false, new String[0]);
    }

    /**
     * Replaces the thresholds; the next reading goes by the new ones.
     *
     * @param bytesPerSecond of all topics together; NaN for no topic quotas
     * @param names the topics that have a threshold of their own, in the order of their rates (bytes/s)
     * @param spared topics that are never turned back, Kafka's own among them
     * @param error the name of the error with which requests are turned back (TopicQuotaError)
     * @param allInShadow whether no threshold is enforced, all are only counted
     * @param inShadow the topics of which that is so
     */
    public void configure(double bytesPerSecond, String[] names, double[] rates, String[] spared, String error,
            boolean allInShadow, String[] inShadow) {
        Map<String, Double> own = new HashMap<>();
        for (int i = 0; i < names.length; i++) own.put(names[i], rates[i]);
        configured = Double.isNaN(bytesPerSecond) ? null : new Configuration(
                new TopicThresholds(bytesPerSecond, Map.copyOf(own), Set.copyOf(List.of(spared)),
                        allInShadow ? null : Set.of(inShadow)), TopicQuotaError.of(error));
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /** Whether there are topic quotas, or were at the last reading. */
    boolean on() {
        return configured != null || applied != null;
    }

    /** Reads the meters, and hands the fence the topics that are over their thresholds now. */
    void read(long nanos) {
        Configuration now = configured;
        if (now != applied) apply(now, nanos);
        TopicMeters.Reading all = now == null ? null : meters.total();
        if (all == null) {
            if (now != null) suspend("Kafka's meter BytesInPerSec can't be found (metrics.jmx.exclude?)");
            turnBack(Map.of(), now);
            return;
        }
        suspended = false;
        if (nanos - listedAt >= LIST_NANOS) list(now.thresholds, nanos);
        totalRate = total.update(all, nanos);
        Map<String, TopicUse> over = updateTopics(now.thresholds, nanos);
        turnBack(totalRate > now.thresholds.total() ? over : Map.of(), now);
    }

    /** Whether the broker takes in almost as much as is expected of it, or more. */
    boolean near() {
        return totalRate > 0.9 * threshold();
    }

    /** The meters cannot be read: until the next reading that succeeds, no request is turned back. */
    void suspend(String why) {
        boolean news = !suspended && Fence.installed();
        if (news && suspensions.pass() != LineLimit.NO) LOG.error("{}: until then topic quotas turn no request back", why);
        suspended = true;
        turnBack(Map.of(), configured);
    }

    private void apply(Configuration now, long nanos) {
        applied = now;
        share = totalRate = 0;
        if (now != null) list(now.thresholds, nanos);
        else topics.clear();
    }

    /** Finds out which topics there are; with them changes the share of those that have no threshold of their own. */
    private void list(TopicThresholds thresholds, long nanos) {
        Set<String> names = meters.list();
        topics.keySet().removeIf(name -> !names.contains(name) || thresholds.spares(name));
        for (String name : names) if (!thresholds.spares(name)) topics.computeIfAbsent(name, TopicUse::new);
        share = thresholds.share(names);
        listedAt = nanos;
    }

    /** Reads the meter of each topic; answers the topics that are over their thresholds. */
    private Map<String, TopicUse> updateTopics(TopicThresholds thresholds, long nanos) {
        Map<String, TopicUse> over = new HashMap<>();
        // Far below the threshold no topic can be turned back soon, so reading the one meter of all topics is enough.
        boolean near = totalRate > thresholds.total() / 2;
        for (TopicUse use : topics.values()) {
            String rule = thresholds.shadowOf(use.topic);
            use.shadow(rule == null ? null : heldBacks.of(rule));
            TopicMeters.Reading now = near ? meters.of(use.topic) : null;
            if (now != null && use.update(now, thresholds.expected(use.topic, share), nanos)) over.put(use.topic, use);
            use.log(totalRate, thresholds, nanos, periods);
        }
        return over;
    }

    private void turnBack(Map<String, TopicUse> over, Configuration now) {
        heldBacks.begin(RULES);
        over.values().forEach(TopicUse::countHeldBack);
        heldBacks.end(RULES);
        TopicsOverThreshold next = over.isEmpty() ? null : new TopicsOverThreshold(Map.copyOf(over), now.error);
        if (Objects.equals(next, overThreshold)) return;
        if (next != null && !Fence.installed() && !warnedOfNoFence) {
            warnedOfNoFence = true;
            LOG.warn("Topics are over their thresholds ({}), but authorizer.class.name is not org.quotahost.QuotaFence:"
                    + " nothing is turned back", over.keySet());
        }
        overThreshold = next;
        Fence.turnBack(next);
    }

    /** Ends the topic quotas: no request is turned back any more. Nobody reads the meters now. */
    public void close() {
        configured = null;
        read(System.nanoTime());
    }

    // ---- operators -------------------------------------------------------------------------------------------

    /** The bytes/s expected of all topics together; 0 without topic quotas. */
    public double threshold() {
        Configuration now = configured;
        return now == null ? 0 : now.thresholds.total();
    }

    /** The bytes/s that all topics take in together. */
    public double rate() {
        return totalRate;
    }

    /** The bytes/s expected of each topic without a threshold of its own. */
    public double share() {
        return share;
    }

    /** The topics that are over their thresholds now, by name. */
    public List<String> over() {
        TopicsOverThreshold now = overThreshold;
        return now == null ? List.of() : now.topics().keySet().stream().sorted().toList();
    }

    /** How many requests topic quotas have turned back since the start of this JVM. */
    public static long rejections() {
        return TopicsOverThreshold.rejections.sum();
    }

    /** How many bytes of record batches topic quotas have turned back since the start of this JVM. */
    public static long rejectedBytes() {
        return TopicsOverThreshold.rejectedBytes.sum();
    }

    /** The topics that are over their thresholds now, which are in shadow. */
    public List<String> overInShadow() {
        TopicsOverThreshold now = overThreshold;
        return now == null ? List.of()
                : now.topics().values().stream().filter(TopicUse::inShadow).map(use -> use.topic).sorted().toList();
    }

    /** How many requests topic quotas would have turned back, had their thresholds not been in shadow. */
    public static long shadowed() {
        return TopicsOverThreshold.shadowed.sum();
    }
}
