package org.quotahost.topics;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;
import org.quotahost.internals.Internals;
import org.quotahost.internals.Meters;
import org.quotahost.internals.Requests;
import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Quotas of topics ("Broker side quota (V1)"): while this broker takes in more than is expected, the fence turns back produce
 * requests to topics over their thresholds (their own or an equal share) with topics.reject.error; some only in shadow.
 *
 * <p>A ClientQuotaCallback does not see topics. So one thread reads Kafka's meters and hands the topics to the fence (turn),
 * which request threads ask. The meters count a request after the append, so a request that is turned back does not count.
 */
public final class TopicQuotas {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.topics");
    /** The shortest pause between two readings, used near the broker's threshold, since all bytes between two readings are let in. */
    public static final long NEAR_MS = 20;
    /** The pauses far from the threshold, and after a failed reading. */
    private static final long FAR_MS = 100, FAILED_MS = 500;
    /** If many topics make a reading slow, the pause is this many times as long as the reading: at most a tenth of a core. */
    private static final long PAUSE_PER_READING = 9;
    private static final long LIST_NANOS = 5_000_000_000L;
    /** How many topics the log names in its one line a minute; explain names all of them. */
    static final int TOPICS_PER_LINE = 20;
    private static final String MESSAGE =
            "quotahost: this broker and the topic both take in more than is expected (topics.*); nothing was appended";

    /** Counts since this JVM's start: requests turned back, or only counted in shadow; bytes of batches turned back. */
    public static final LongAdder rejections = new LongAdder(), shadowed = new LongAdder(), rejectedBytes = new LongAdder();

    /** Null if there are no topic quotas. */
    private volatile Thresholds configured;
    private volatile double share;
    private volatile Over over = Over.NOTHING;
    private final Map<String, InShadow> shadows = new ConcurrentHashMap<>();
    private volatile TopicUse.OneMinuteRate total = new TopicUse.OneMinuteRate();
    private final Map<String, TopicUse> topics = new ConcurrentHashMap<>();
    /** The thresholds of the last reading. */
    private Thresholds applied;
    /** The times of the next reading and of the last list of topics (System.nanoTime). */
    private long dueAt = System.nanoTime(), listedAt;
    private final LineLimit lines = new LineLimit(1);

    // ---- the host --------------------------------------------------------------------------------------------

    /** Sets bytes/s for all topics (NaN for no quotas) and for topics with their own thresholds; the next reading applies them. */
    public void configure(double bytesPerSecond, String[] names, double[] rates, String[] spared, String error,
            List<String> shadow) {
        Map<String, Double> own = new HashMap<>();
        for (int i = 0; i < names.length; i++) own.put(names[i], rates[i]);
        configured = Double.isNaN(bytesPerSecond) ? null : new Thresholds(bytesPerSecond, Map.copyOf(own),
                Set.copyOf(List.of(spared)), Set.copyOf(shadow), Requests.error(error, MESSAGE));
    }

    /**
     * The bytes/s that this broker expects to take in ("Broker side quota (V1)", low level design, 1): of all topics together,
     * of each topic with a threshold of its own, and of each other topic an equal share of the rest.
     *
     * @param own by topic; Python checks that their sum is at most the total (quotahost.settings.properties)
     */
    record Thresholds(double total, Map<String, Double> own, Set<String> spared, Set<String> shadow,
            RuntimeException answer) {
        /** Returns the rule by which a topic's threshold is in shadow; null if the threshold is enforced. */
        String shadowOf(String topic) {
            return shadow.contains("topics") ? "topics" : shadow.contains("topic." + topic) ? "topic." + topic : null;
        }

        /** Returns the bytes/s expected of each topic without a threshold of its own, if these are the broker's topics. */
        double share(Collection<String> topics) {
            long others = topics.stream().filter(topic -> !spared.contains(topic) && !own.containsKey(topic)).count();
            double left = total - own.values().stream().mapToDouble(Double::doubleValue).sum();
            return Math.max(0, left) / Math.max(1, others);
        }
    }

    // ---- the thread that reads the meters --------------------------------------------------------------------

    /** Reads the meters if the pause since the last reading is over; called every NEAR_MS. */
    public void turn() {
        long before = System.nanoTime();
        if (before - dueAt < 0 || configured == null && applied == null) return;
        dueAt = before + TimeUnit.MILLISECONDS.toNanos(FAILED_MS);
        try {
            read(before);
        } catch (Throwable e) {
            turnBack(Map.of(), null); // until a reading succeeds
            throw e; // the schedule counts and logs it, and continues
        }
        long after = System.nanoTime(), pauseMs = rate() > 0.9 * threshold() ? NEAR_MS : FAR_MS;
        dueAt = after + Math.max(TimeUnit.MILLISECONDS.toNanos(pauseMs), PAUSE_PER_READING * (after - before));
    }

    void read(long nanos) {
        Thresholds now = configured;
        if (now == null) {
            end();
            return;
        }
        Meters kafkas = Internals.METERS.get();
        Meters.Of all = kafkas == null ? null : kafkas.of(Meters.BYTES_IN);
        // A combined node has no meter while its controller shuts down (BrokerServer closes its BrokerTopicStats earlier).
        Internals.METERS.lacks(all == null && Fence.installed() ? Meters.BYTES_IN : null, nanos);
        if (all == null) {
            turnBack(Map.of(), null);
            return;
        }
        if (now != applied || nanos - listedAt >= LIST_NANOS) list(kafkas, now, nanos);
        total.update(all, nanos);
        Map<String, TopicUse> next = new HashMap<>();
        for (TopicUse use : topics.values()) {
            use.shadow = shadow(now.shadowOf(use.topic));
            if (use.update(now.own.getOrDefault(use.topic, share), nanos)) next.put(use.topic, use);
        }
        turnBack(total.rate > now.total ? next : Map.of(), now.answer);
    }

    /** Logs the requests that were turned back since the last line, at most once a minute; any thread may call this. */
    public void log() {
        List<TopicUse> turnedBack = topics.values().stream().filter(use -> use.turnedBack.sum() > 0).toList();
        if (configured == null || turnedBack.isEmpty() || lines.pass() == LineLimit.NO) return;
        LOG.warn("Produce requests to {} topic(s) were turned back: this broker takes in {} bytes/s, {} are expected. {}",
                turnedBack.size(), Math.round(rate()), Math.round(threshold()), turnedBack.stream().limit(TOPICS_PER_LINE).toList());
        turnedBack.forEach(use -> use.turnedBack.reset());
    }

    /** Forgets the readings, too: bytes that come in while there are no quotas must not count when there are some again. */
    private void end() {
        applied = null;
        share = 0;
        total = new TopicUse.OneMinuteRate();
        topics.clear();
        turnBack(Map.of(), null);
    }

    /** Lists the topics. Their number changes the share of the topics without a threshold of their own. */
    private void list(Meters kafkas, Thresholds thresholds, long nanos) {
        applied = thresholds;
        Map<String, Meters.Of> meters = kafkas.topics();
        share = thresholds.share(meters.keySet());
        meters.keySet().removeAll(thresholds.spared);
        topics.keySet().retainAll(meters.keySet());
        meters.forEach((name, meter) -> topics.computeIfAbsent(name, TopicUse::new).source = meter);
        listedAt = nanos;
    }

    private InShadow shadow(String rule) {
        return rule == null ? null : shadows.computeIfAbsent(rule, any -> new InShadow(new DoubleAdder(), new DoubleAdder()));
    }

    private void turnBack(Map<String, TopicUse> uses, RuntimeException answer) {
        uses.values().forEach(TopicUse::countInShadow);
        over = uses.isEmpty() ? Over.NOTHING : new Over(uses, answer);
        Fence.turnBack(uses.isEmpty() ? null : over);
    }

    /** Ends the topic quotas, so that no request is turned back any more. The thread that reads the meters has ended. */
    public void close() {
        configured = null;
        end();
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** The topics that take in more than is expected now, by name, and the error for requests to them. */
    private record Over(Map<String, TopicUse> topics, RuntimeException answer) implements Fence.Topics {
        private static final Over NOTHING = new Over(Map.of(), null);

        @Override
        public RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
                List<AuthorizationResult> results) {
            TopicUse enforced = null;
            boolean counts = false;
            for (int i = 0; i < results.size(); i++) {
                String topic = Fence.writable(actions.get(i), results.get(i));
                TopicUse use = topic == null ? null : topics.get(topic);
                if (use == null) continue;
                use.turnedBack.increment();
                if (use.shadow != null) counts = true;
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

    /** Returns the bytes/s expected of all topics together; 0 if there are no topic quotas. */
    public double threshold() {
        Thresholds now = configured;
        return now == null ? 0 : now.total;
    }

    public double rate() {
        return configured == null ? 0 : total.rate;
    }

    public double share() {
        return share;
    }

    public List<String> over() {
        return over.topics.keySet().stream().sorted().toList();
    }

    public List<String> overInShadow() {
        return over.topics.values().stream().filter(use -> use.shadow != null).map(use -> use.topic).sorted().toList();
    }

    /** For how long the topics of a rule in shadow were over their thresholds, and how many bytes exceeded these. */
    public record InShadow(DoubleAdder seconds, DoubleAdder bytes) {}

    /** Returns all rules that are or were in shadow, by the names that the property shadow has for them. */
    public Map<String, InShadow> inShadow() {
        return shadows;
    }

    public long over(InShadow rule) {
        return over.topics.values().stream().filter(use -> use.shadow == rule).count();
    }
}
