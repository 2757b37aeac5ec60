package org.quotahost.topics;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.quotahost.fence.Fence;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * "Broker side quota (V1)": while this broker takes in more than is expected of it, produce requests to the topics that take
 * in more than is expected of them are turned back. No ClientQuotaCallback sees a topic; the fence does.
 *
 * <p>The host configures, one thread (TopicWatch) looks, request threads read what the fence was handed last. What a
 * request brought counts once it is appended, so what is turned back never does.
 */
public final class TopicQuotas {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.topics");
    private static final long LIST_NANOS = 5_000_000_000L;

    private final TopicMeters meters = new TopicMeters();
    private volatile Configured configured;
    private volatile double totalRate;
    private volatile double share;
    private volatile TopicsOverThreshold handed;
    private final CarriedRate total = new CarriedRate();
    private final Map<String, TopicUse> topics = new HashMap<>();
    private Configured seen;
    private boolean blind;
    private boolean toldFence;
    private long listedAt;

    private record Configured(TopicThresholds thresholds, RuntimeException refusal) {}

    // ---- the host --------------------------------------------------------------------------------------------

    /**
     * What holds from now on.
     *
     * @param bytesPerSecond of all topics; NaN for no topic quotas
     * @param names of the topics that have a threshold of their own, in the order of their rates (bytes/s)
     * @param spared topics that are never turned back, besides internal ones
     * @param error with which requests are turned back (TopicQuotaError)
     */
    public void configure(double bytesPerSecond, String[] names, double[] rates, String[] spared, String error) {
        Map<String, Double> own = new HashMap<>();
        for (int i = 0; i < names.length; i++) own.put(names[i], rates[i]);
        configured = Double.isNaN(bytesPerSecond) ? null
                : new Configured(new TopicThresholds(bytesPerSecond, Map.copyOf(own), Set.of(spared)), TopicQuotaError.of(error));
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /** Whether there is anything to look at. */
    boolean on() {
        return configured != null || seen != null;
    }

    /** Reads the meters, and hands the fence the topics that are over now. */
    void look(long nanos) {
        Configured now = configured;
        if (now != seen) begin(now, nanos);
        TopicMeters.Reading all = now == null ? null : meters.total();
        if (all == null) {
            if (now != null) blind("Kafka's meter BytesInPerSec can't be found (metrics.jmx.exclude?)");
            hand(Map.of(), now);
            return;
        }
        blind = false;
        if (nanos - listedAt >= LIST_NANOS) list(now.thresholds, nanos);
        totalRate = total.look(all, nanos);
        Map<String, TopicUse> over = topicsOver(now.thresholds, nanos);
        hand(totalRate > now.thresholds.total() ? over : Map.of(), now);
    }

    /** Whether it comes in at close to what is expected in all. */
    boolean near() {
        return totalRate > 0.9 * threshold();
    }

    /** What can't be measured is not turned back. */
    void blind(String why) {
        if (!blind && Fence.installed()) LOG.error("{}: until it can be, no topic quota holds", why);
        blind = true;
        hand(Map.of(), configured);
    }

    private void begin(Configured now, long nanos) {
        seen = now;
        share = totalRate = 0;
        if (now != null) list(now.thresholds, nanos);
        else topics.clear();
    }

    /** Thresholds or topics may have changed: who has no threshold has another share. */
    private void list(TopicThresholds thresholds, long nanos) {
        Set<String> names = meters.list();
        topics.keySet().removeIf(name -> !names.contains(name) || thresholds.spares(name));
        for (String name : names) if (!thresholds.spares(name)) topics.computeIfAbsent(name, TopicUse::new);
        share = thresholds.share(names);
        listedAt = nanos;
    }

    private Map<String, TopicUse> topicsOver(TopicThresholds thresholds, long nanos) {
        Map<String, TopicUse> found = new HashMap<>();
        boolean near = totalRate > thresholds.total() / 2; // else only the one meter is read
        for (TopicUse use : topics.values()) {
            TopicMeters.Reading now = near ? meters.of(use.topic) : null;
            if (now != null && use.look(now, thresholds.expected(use.topic, share), nanos)) found.put(use.topic, use);
            use.tell(totalRate, thresholds, nanos);
        }
        return found;
    }

    private void hand(Map<String, TopicUse> over, Configured now) {
        TopicsOverThreshold next = over.isEmpty() ? null : new TopicsOverThreshold(Map.copyOf(over), now.refusal);
        if (Objects.equals(next, handed)) return;
        if (next != null && !Fence.installed() && !toldFence) {
            toldFence = true;
            LOG.warn("Topics are over their thresholds ({}), but authorizer.class.name is not org.quotahost.QuotaFence: nothing is"
                    + " turned back", over.keySet());
        }
        handed = next;
        Fence.topics(next);
    }

    /** From now on nothing is turned back. */
    void close() {
        configured = null;
        look(System.nanoTime());
    }

    // ---- operators -------------------------------------------------------------------------------------------

    /** What is expected in all, in bytes/s; 0 without topic quotas. */
    public double threshold() {
        Configured now = configured;
        return now == null ? 0 : now.thresholds.total();
    }

    public double rate() {
        return totalRate;
    }

    /** What is expected of each topic without a threshold of its own. */
    public double share() {
        return share;
    }

    /** The topics that are over now, by name. */
    public List<String> over() {
        TopicsOverThreshold now = handed;
        return now == null ? List.of() : now.topics().keySet().stream().sorted().toList();
    }
}
