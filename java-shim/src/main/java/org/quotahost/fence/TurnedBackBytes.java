package org.quotahost.fence;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * The bytes of record batches that were turned back, by topic: what would have been appended ("Broker side quota
 * (V1)", discussion: a meter of the throttled bytes).
 *
 * <p>From Produce v13 on a request names its topics by ids, and no authorizer can translate them. A request to one topic
 * is counted under the name that Kafka asks the authorizer about; one to several is counted under SEVERAL.
 *
 * <p>A name is kept for each topic that a client may write to, which may be none that exists; beyond MOST_TOPICS they
 * are counted under OTHERS.
 */
public final class TurnedBackBytes {
    static final String SEVERAL = "<several topics>";
    static final String OTHERS = "<other topics>";
    static final int MOST_TOPICS = 1_000;

    private static final ConcurrentHashMap<String, LongAdder> byTopic = new ConcurrentHashMap<>();

    private TurnedBackBytes() {}

    /** Counts the request that this thread handles; answers the bytes of record batches that its client may write. */
    static long count(List<Action> actions, List<AuthorizationResult> results) {
        Collection<TopicProduceData> topics = CurrentRequest.topics();
        Set<String> allowed = topics.isEmpty() ? Set.of() : allowed(actions, results);
        long all = 0;
        for (TopicProduceData topic : topics) {
            String name = name(topic.name(), topics.size(), allowed);
            if (name == null) continue;
            long bytes = CurrentRequest.records(topic);
            add(name, bytes);
            all += bytes;
        }
        return all;
    }

    private static Set<String> allowed(List<Action> actions, List<AuthorizationResult> results) {
        Set<String> names = new HashSet<>();
        for (int i = 0; i < results.size(); i++) {
            String topic = Fence.writable(actions.get(i), results.get(i));
            if (topic != null) names.add(topic);
        }
        return names;
    }

    /**
     * Under which name the bytes for a topic of a request are counted, or null if its client may not write to it.
     *
     * @param inRequest its name in the request, "" if that has its id
     * @param number how many topics the request has
     * @param allowed those that the client may write to, of those that Kafka asks about
     */
    static String name(String inRequest, int number, Set<String> allowed) {
        if (inRequest.isEmpty()) return number == 1 && allowed.size() == 1 ? allowed.iterator().next() : SEVERAL;
        if (!allowed.contains(inRequest)) return null;
        // Where everything is allowed, the name may be anything.
        return Topic.isValid(inRequest) ? inRequest : OTHERS;
    }

    static void add(String topic, long bytes) {
        LongAdder known = byTopic.get(topic);
        if (known == null) {
            String name = byTopic.size() < MOST_TOPICS ? topic : OTHERS;
            known = byTopic.computeIfAbsent(name, each -> new LongAdder());
        }
        known.add(bytes);
    }

    /** The topics from which something was turned back since the start of this JVM. */
    public static Set<String> topics() {
        return byTopic.keySet();
    }

    /** How many bytes of record batches for a topic were turned back since the start of this JVM. */
    public static long of(String topic) {
        LongAdder known = byTopic.get(topic);
        return known == null ? 0 : known.sum();
    }
}
