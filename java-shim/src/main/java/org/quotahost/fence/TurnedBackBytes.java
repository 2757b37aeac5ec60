package org.quotahost.fence;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;

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

    /** Counts the request that this thread handles; answers the bytes of its record batches. */
    static long count(List<Action> actions) {
        long all = 0;
        for (TopicProduceData topic : CurrentRequest.topics()) {
            long bytes = CurrentRequest.records(topic);
            add(name(topic.name(), actions), bytes);
            all += bytes;
        }
        return all;
    }

    /** The name of a topic of a request that Kafka asks about with these actions; in the request it may be "". */
    static String name(String inRequest, List<Action> actions) {
        if (!inRequest.isEmpty()) return inRequest;
        var resource = actions.get(0).resourcePattern();
        return actions.size() == 1 && resource.resourceType() == ResourceType.TOPIC ? resource.name() : SEVERAL;
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
