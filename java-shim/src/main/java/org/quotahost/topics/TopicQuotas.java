package org.quotahost.topics;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;
import org.quotahost.internals.Internals;
import org.quotahost.internals.Meters;
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

    private static final String MESSAGE =
            "quotahost: this broker and the topic both take in more than is expected (topics.*); nothing was appended";

    private static final LongAdder rejections = new LongAdder();
    private static final LongAdder shadowed = new LongAdder();
    private static final LongAdder rejectedBytes = new LongAdder();
    /** What Python has configured last, null for no topic quotas. */
    private volatile TopicThresholds configured;
    private volatile double totalRate;
    private volatile double share;
    /** What the fence has. */
    private volatile Over over;
    private OneMinuteRate total = new OneMinuteRate();
    private final Map<String, TopicUse> topics = new HashMap<>();
    private Map<String, Meters.Of> meters = Map.of();
    /** What the last reading went by. */
    private TopicThresholds applied;
    private boolean suspended;
    private final LineLimit suspensions = new LineLimit(1);
    /** Hundreds of topics may be over at once; the gauge Over and explain name all of them. */
    private final LineLimit periods = new LineLimit(TOPICS_PER_MINUTE);
    private boolean warnedOfNoFence;
    private final HeldBacks heldBacks;
    private long listedAt;

    public TopicQuotas() {
        this(new HeldBacks());
    }

    /** @param heldBacks the counters of rules in shadow */
    public TopicQuotas(HeldBacks heldBacks) {
        this.heldBacks = heldBacks;
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /**
     * Replaces the thresholds; the next reading goes by the new ones.
     *
     * @param bytesPerSecond of all topics together; NaN for no topic quotas
     * @param names the topics that have a threshold of their own, in the order of their rates (bytes/s)
     * @param spared topics that are never turned back, Kafka's own among them
     * @param error the name in Kafka's protocol of the error with which requests are turned back
     * @param allInShadow whether no threshold is enforced, all are only counted
     * @param inShadow the topics of which that is so
     */
    public void configure(double bytesPerSecond, String[] names, double[] rates, String[] spared, String error,
            boolean allInShadow, String[] inShadow) {
        Map<String, Double> own = new HashMap<>();
        for (int i = 0; i < names.length; i++) own.put(names[i], rates[i]);
        configured = Double.isNaN(bytesPerSecond) ? null : new TopicThresholds(bytesPerSecond, Map.copyOf(own),
                Set.copyOf(List.of(spared)), allInShadow ? null : Set.of(inShadow), Errors.valueOf(error).exception(MESSAGE));
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /** Whether there are topic quotas, or were at the last reading. */
    boolean on() {
        return configured != null || applied != null;
    }

    /** Reads the meters, and hands the fence the topics that are over their thresholds now. */
    void read(long nanos) {
        TopicThresholds now = configured;
        if (now == null) {
            end();
            return;
        }
        Meters kafkas = Internals.METERS.get();
        Meters.Of all = kafkas == null ? null : kafkas.of(Meters.BYTES_IN);
        if (all == null) {
            suspend("Kafka's meter " + Meters.BYTES_IN + " can't be found");
            return;
        }
        suspended = false;
        if (now != applied || nanos - listedAt >= LIST_NANOS) list(kafkas, now, nanos);
        totalRate = total.update(all, nanos);
        Map<String, TopicUse> found = updateTopics(now, nanos);
        turnBack(totalRate > now.total() ? found : Map.of(), now.answer());
    }

    private void end() {
        applied = null;
        share = totalRate = 0;
        total = new OneMinuteRate();
        topics.clear();
        turnBack(Map.of(), null);
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
        turnBack(Map.of(), null);
    }

    /** Finds out which topics there are; with them changes the share of those that have no threshold of their own. */
    private void list(Meters kafkas, TopicThresholds thresholds, long nanos) {
        applied = thresholds;
        meters = kafkas.topics();
        topics.keySet().removeIf(name -> !meters.containsKey(name) || thresholds.spares(name));
        for (String name : meters.keySet()) if (!thresholds.spares(name)) topics.computeIfAbsent(name, TopicUse::new);
        share = thresholds.share(meters.keySet());
        listedAt = nanos;
    }

    /** Reads the meter of each topic; answers the topics that are over their thresholds. */
    private Map<String, TopicUse> updateTopics(TopicThresholds thresholds, long nanos) {
        Map<String, TopicUse> found = new HashMap<>();
        for (TopicUse use : topics.values()) {
            String rule = thresholds.shadowOf(use.topic);
            use.shadow(rule == null ? null : heldBacks.of(rule));
            if (use.update(meters.get(use.topic), thresholds.expected(use.topic, share), nanos)) found.put(use.topic, use);
            use.log(totalRate, thresholds, nanos, periods);
        }
        return found;
    }

    private void turnBack(Map<String, TopicUse> found, RuntimeException answer) {
        heldBacks.begin(RULES);
        found.values().forEach(TopicUse::countHeldBack);
        heldBacks.end(RULES);
        Over next = found.isEmpty() ? null : new Over(Map.copyOf(found), answer);
        if (Objects.equals(next, over)) return;
        if (next != null && !Fence.installed() && !warnedOfNoFence) {
            warnedOfNoFence = true;
            LOG.warn("Topics are over their thresholds ({}), but authorizer.class.name is not org.quotahost.QuotaFence:"
                    + " nothing is turned back", found.keySet());
        }
        over = next;
        Fence.turnBack(next);
    }

    /** Ends the topic quotas: no request is turned back any more. Nobody reads the meters now. */
    public void close() {
        configured = null;
        end();
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /**
     * The topics that take in more than is expected at this moment, and the error for requests to them.
     *
     * @param topics by name, each with the counter of its requests
     */
    private record Over(Map<String, TopicUse> topics, RuntimeException answer) implements Fence.Topics {
        @Override
        public RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
                List<AuthorizationResult> results) {
            TopicUse enforced = null;
            boolean counts = false;
            for (int i = 0; i < results.size(); i++) {
                String topic = Fence.writable(actions.get(i), results.get(i));
                TopicUse use = topic == null ? null : topics.get(topic);
                if (use == null) continue;
                use.countTurnedBack();
                if (use.inShadow()) counts = true;
                else if (enforced == null) enforced = use;
            }
            if (enforced == null) {
                if (counts) shadowed.increment();
                return null;
            }
            rejections.increment();
            TurnedBack.note(context, actions, results, enforced.topic, enforced.allowance(), rejectedBytes);
            return answer;
        }
    }

    // ---- operators -------------------------------------------------------------------------------------------

    /** The bytes/s expected of all topics together; 0 without topic quotas. */
    public double threshold() {
        TopicThresholds now = configured;
        return now == null ? 0 : now.total();
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
        Over now = over;
        return now == null ? List.of() : now.topics.keySet().stream().sorted().toList();
    }

    /** Those of them of which requests are only counted, since their thresholds are in shadow. */
    public List<String> overInShadow() {
        Over now = over;
        return now == null ? List.of()
                : now.topics.values().stream().filter(TopicUse::inShadow).map(use -> use.topic).sorted().toList();
    }

    /** How many requests topic quotas have turned back since the start of this JVM. */
    public static long rejections() {
        return rejections.sum();
    }

    /** How many bytes of record batches topic quotas have turned back since the start of this JVM. */
    public static long rejectedBytes() {
        return rejectedBytes.sum();
    }

    /** How many requests topic quotas would have turned back, had their thresholds not been in shadow. */
    public static long shadowed() {
        return shadowed.sum();
    }
}
