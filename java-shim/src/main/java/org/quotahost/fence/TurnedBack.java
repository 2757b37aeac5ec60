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
import org.quotahost.internals.Requests;

/**
 * What was turned back: lately whose requests, since Kafka measures nothing of these, and since the start of this JVM
 * how many bytes of record batches by topic, which would have been appended ("Broker side quota (V1)", discussion: a
 * meter of the throttled bytes).
 *
 * <p>A client-id is only a claim, so at most MOST_CLIENTS are kept, none whose names are too long, and each for LATELY_MS
 * after its last request. While all places are taken, further clients are left out. A topic may be none that exists;
 * beyond MOST_TOPICS their bytes are counted under OTHERS.
 */
public final class TurnedBack {
    static final String SEVERAL = "<several topics>";
    static final String OTHERS = "<other topics>";
    static final int MOST_TOPICS = 1_000, MOST_CLIENTS = 1_000;
    static final long LATELY_MS = 15_000;
    /** A flood of invented clients finds all places taken again and again, and is not to look for old ones each time. */
    private static final long PRUNE_MS = 1_000;

    private static final ConcurrentHashMap<String, LongAdder> bytes = new ConcurrentHashMap<>();
    static final ConcurrentHashMap<Names, Client> clients = new ConcurrentHashMap<>();
    private static volatile long prunedAt;

    private TurnedBack() {}

    record Names(String principal, String clientId) {}

    /** That a client was turned back, by topic quotas or else by the closed fence. */
    public record Client(String principal, String clientId, boolean byTopics, long atMs) {
        private boolean isOver(long nowMs) {
            return nowMs - atMs > LATELY_MS;
        }
    }

    // ---- clients ---------------------------------------------------------------------------------------------

    /** Notes that a request of this client is turned back now. */
    static void note(String principal, String clientId, boolean byTopics) {
        note(principal, clientId, byTopics, nowMs());
    }

    static void note(String principal, String clientId, boolean byTopics, long now) {
        if (principal.length() > Exemptions.LONGEST_CLIENT_ID || clientId.length() > Exemptions.LONGEST_CLIENT_ID) return;
        Names names = new Names(principal, clientId);
        if (clients.size() >= MOST_CLIENTS && !clients.containsKey(names)) {
            if (now - prunedAt >= PRUNE_MS) prune(now);
            if (clients.size() >= MOST_CLIENTS) return;
        }
        clients.put(names, new Client(principal, clientId, byTopics, now));
    }

    private static void prune(long now) {
        prunedAt = now;
        clients.values().removeIf(each -> each.isOver(now));
    }

    /** What has lately turned a request of this client back: "fence", "topics", or "" for nothing. */
    public static String by(String principal, String clientId) {
        Client last = clients.get(new Names(principal, clientId));
        return last == null || last.isOver(nowMs()) ? "" : last.byTopics ? "topics" : "fence";
    }

    /** Whether topic quotas have turned a request of this client back lately. */
    public static boolean byTopics(String principal, String clientId) {
        return by(principal, clientId).equals("topics");
    }

    /** All who were turned back lately. */
    public static Collection<Client> lately() {
        prune(nowMs());
        return clients.values();
    }

    private static long nowMs() {
        return System.nanoTime() / 1_000_000;
    }

    // ---- bytes -----------------------------------------------------------------------------------------------

    /**
     * Counts the request that this thread handles; answers the bytes of record batches that its client may write.
     *
     * <p>From Produce v13 on a request names its topics by ids, and no authorizer can translate them. A request to one
     * topic is counted under the name that Kafka asks the authorizer about; one to several is counted under SEVERAL.
     */
    static long count(List<Action> actions, List<AuthorizationResult> results) {
        Collection<TopicProduceData> topics = Requests.topics();
        Set<String> allowed = topics.isEmpty() ? Set.of() : allowed(actions, results);
        long all = 0;
        for (TopicProduceData topic : topics) {
            String name = name(topic.name(), topics.size(), allowed);
            if (name == null) continue;
            long records = Requests.records(topic);
            add(name, records);
            all += records;
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

    static void add(String topic, long records) {
        LongAdder known = bytes.get(topic);
        if (known == null) {
            String name = bytes.size() < MOST_TOPICS ? topic : OTHERS;
            known = bytes.computeIfAbsent(name, each -> new LongAdder());
        }
        known.add(records);
    }

    /** The topics from which something was turned back since the start of this JVM. */
    public static Set<String> topics() {
        return bytes.keySet();
    }

    /** How many bytes of record batches for a topic were turned back since the start of this JVM. */
    public static long of(String topic) {
        LongAdder known = bytes.get(topic);
        return known == null ? 0 : known.sum();
    }
}
