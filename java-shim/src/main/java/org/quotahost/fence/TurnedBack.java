package org.quotahost.fence;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.internals.Internals;
import org.quotahost.internals.Mute;
import org.quotahost.internals.Requests;
import org.quotahost.util.Names;

/**
 * The bookkeeping of requests that were turned back, since Kafka measures none of them: which clients sent them lately, and the
 * bytes of their record batches by topic ("Broker side quota (V1)", discussion: a meter of the throttled bytes). This class
 * also mutes clients that exceed their allowance.
 *
 * <p>The allowance belongs to the principal, since a client-id is only a claim. If a principal has used up its allowance, each
 * of its connections is muted once for each BYTES_OF_A_MUTE that it sends (docs/adr/0016-what-a-refusal-costs.md).
 *
 * <p>At most MOST_CLIENTS clients are kept, each for LATELY_NANOS after its last request. Further clients are left out while
 * all places are taken, and so are principals with too long a name (Names). A topic's name may be one that does not exist;
 * beyond MOST_TOPICS topics the bytes are counted under OTHERS.
 */
public final class TurnedBack {
    static final String SEVERAL = "<several topics>", OTHERS = "<other topics>";
    static final int MOST_TOPICS = 1_000, MOST_CLIENTS = 1_000;
    static final long LATELY_NANOS = 15_000_000_000L;

    static final long BYTES_OF_A_MUTE = 1_000_000;
    /** A power of two. */
    private static final int SLOTS = 4_096;

    /** The most allowance that a principal can save up, in seconds of its rate. */
    static final long SAVED_SECONDS = 4;
    private static final long SECOND = 1_000_000_000L;
    /** The origin of all times here, since System.nanoTime may have any value and overflow. */
    static final long ORIGIN = System.nanoTime();

    private static final AtomicLongArray paidUntil = new AtomicLongArray(SLOTS);
    /** The bytes of each connection beyond the allowance since its last mute. Some connections share a slot. */
    private static final AtomicLongArray sinceMute = new AtomicLongArray(SLOTS);
    /** The bytes of record batches that were turned back since the start of this JVM, by topic. */
    public static final Map<String, LongAdder> bytes = new ConcurrentHashMap<>();
    public static final Map<Client, Last> clients = new ConcurrentHashMap<>();

    private TurnedBack() {}

    public record Client(String principal, String clientId) {}

    /** What turned a client back last ("topics" for topic quotas, otherwise "fence"), and when (System.nanoTime). */
    public record Last(String by, long nanos) {}

    /**
     * Notes that the request which this thread handles is turned back, and counts the bytes of its record batches.
     *
     * @param topic the topic whose quota turns the request back, or "" for the closed fence
     * @param bytesPerSecond the principal's allowance
     */
    public static void note(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results,
            String topic, double bytesPerSecond, LongAdder counter) {
        KafkaPrincipal principal = context.principal();
        try {
            note(new Client(principal.getName(), Names.kept(context.clientId())),
                    new Last(topic.isEmpty() ? "fence" : "topics", System.nanoTime()));
            long records = Requests.recordBytes();
            counter.add(records);
            add(name(actions, results), records);
            long size = Requests.bytes();
            if (size == 0 || Internals.MUTE.get() == null) return;
            int key = 31 * principal.hashCode() + topic.hashCode();
            if (allows(key, size, bytesPerSecond, System.nanoTime())) return;
            if (muteIsDue(context, size) && Requests.release()) Mute.mark(principal);
        } catch (Throwable e) { // a later Kafka may keep requests in another way; the client gets the same answer
            Internals.REQUESTS.failed(e);
        }
    }

    private static boolean muteIsDue(AuthorizableRequestContext context, long bytes) {
        int place = slot(Requests.connection(context).hashCode());
        if (sinceMute.addAndGet(place, bytes) < BYTES_OF_A_MUTE) return false;
        sinceMute.set(place, 0);
        return true;
    }

    private static int slot(int hash) {
        return (hash ^ hash >>> 12 ^ hash >>> 24) & SLOTS - 1;
    }

    static void note(Client client, Last last) {
        if (!Names.keepsPrincipal(client.principal)) return;
        if (clients.size() < MOST_CLIENTS || clients.containsKey(client)) clients.put(client, last);
    }

    /** Removes old entries, so that other clients find a place; the watch calls this every second. */
    public static void forgetOld(long nanos) {
        clients.values().removeIf(last -> nanos - last.nanos > LATELY_NANOS);
    }

    /** Returns what has turned back requests of this client lately: "fence", "topics", or "" for nothing. */
    public static String by(String principal, String clientId) {
        Last last = clients.get(new Client(principal, Names.kept(clientId)));
        return last == null ? "" : last.by;
    }

    // ---- bytes -----------------------------------------------------------------------------------------------

    /**
     * Returns the name under which the bytes of a request are counted: the topic about which Kafka asks the authorizer, or
     * SEVERAL. From Produce v13 on the request itself names its topics by ids, which an authorizer cannot translate.
     */
    static String name(List<Action> actions, List<AuthorizationResult> results) {
        String name = null;
        for (int i = 0; i < results.size(); i++) {
            String topic = Fence.writable(actions.get(i), results.get(i));
            if (topic == null) continue;
            // If everything is allowed, a client may send any text as the topic's name.
            name = name != null ? SEVERAL : Requests.isTopicName(topic) ? topic : OTHERS;
        }
        return name;
    }

    static void add(String topic, long records) {
        String name = bytes.containsKey(topic) || bytes.size() < MOST_TOPICS ? topic : OTHERS;
        bytes.computeIfAbsent(name, any -> new LongAdder()).add(records);
    }

    // ---- the allowance ---------------------------------------------------------------------------------------

    /**
     * Takes the bytes of a request that is turned back from the allowance, and returns whether the allowance was enough; key is
     * the hash of the principal and the topic.
     *
     * <p>A producer that waits before it retries, as Kafka's own do (retry.backoff.ms, 0.1 to 1 s), stays within the allowance
     * and is not muted; a producer that does not wait uses it up immediately. A request of any size takes at most one second of
     * it, since a mute also lets one request a second pass. Each slot stores the time until which its bytes are paid for (the
     * generic cell rate algorithm). Some keys share a slot, so a client may be muted for another client's bytes.
     */
    static boolean allows(int key, long bytes, double bytesPerSecond, long nanos) {
        if (!(bytesPerSecond > 0)) return false;
        int slot = slot(key);
        long now = nanos - ORIGIN;
        long cost = (long) Math.min(SECOND, bytes / bytesPerSecond * SECOND);
        while (true) {
            long before = paidUntil.get(slot);
            long after = Math.max(before, now) + cost;
            if (after - now > SAVED_SECONDS * SECOND) return false;
            if (paidUntil.compareAndSet(slot, before, after)) return true;
        }
    }
}
