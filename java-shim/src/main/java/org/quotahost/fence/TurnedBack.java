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
 * What a turned back request costs its client (beyond its allowance a mute), and what is kept of it: lately whose
 * requests, since Kafka measures nothing of these, and by topic how many bytes of record batches ("Broker side quota (V1)",
 * discussion: a meter of the throttled bytes).
 *
 * <p>If the principal has used up its allowance (not the client-id, which is only a claim), each of its connections is muted
 * once for each BYTES_OF_A_MUTE that it sends (docs/adr/0016-what-a-refusal-costs.md).
 *
 * <p>At most MOST_CLIENTS are kept, none of a principal whose name is too long (Names), and each for LATELY_NANOS after its
 * last request. While all places are taken, further clients are left out. A topic may be none that exists; beyond
 * MOST_TOPICS their bytes are counted under OTHERS.
 */
public final class TurnedBack {
    static final String SEVERAL = "<several topics>", OTHERS = "<other topics>";
    static final int MOST_TOPICS = 1_000, MOST_CLIENTS = 1_000;
    static final long LATELY_NANOS = 15_000_000_000L;

    static final long BYTES_OF_A_MUTE = 1_000_000;
    /** A power of two. */
    private static final int SLOTS = 4_096;

    /** What a client may save up, in seconds of its rate. */
    static final long SAVED_SECONDS = 4;
    private static final long SECOND = 1_000_000_000L;
    /** By System.nanoTime, which may be anything and overflow: all times are after it. */
    static final long ORIGIN = System.nanoTime();

    private static final AtomicLongArray paidUntil = new AtomicLongArray(SLOTS);
    /** The bytes of each connection since its last mute, beyond the allowance; some connections share a place. */
    private static final AtomicLongArray sinceMute = new AtomicLongArray(SLOTS);
    /** The bytes of record batches turned back since the start of this JVM, by topic. */
    public static final Map<String, LongAdder> bytes = new ConcurrentHashMap<>();
    public static final Map<Client, Last> clients = new ConcurrentHashMap<>();

    private TurnedBack() {}

    public record Client(String principal, String clientId) {}

    /** By what ("topics" for topic quotas, or else "fence") and when (System.nanoTime) a client was turned back last. */
    public record Last(String by, long nanos) {}

    /**
     * Notes that the request which this thread handles is turned back, and counts the bytes of its record batches.
     *
     * @param topic for whose sake, "" for that of the closed fence; its principal may send on so many bytes/s
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
            if (size == Requests.UNKNOWN || Internals.MUTE.get() == null) return;
            int key = 31 * principal.hashCode() + topic.hashCode();
            if (allows(key, size, bytesPerSecond, System.nanoTime())) return;
            if (muteIsDue(context, size) && Requests.release()) Mute.mark(principal);
        } catch (Throwable e) { // a later Kafka keeps requests in another way; the client gets the same answer
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

    /** Makes room for others; the watch calls it every second. */
    public static void forgetOld(long nanos) {
        clients.values().removeIf(last -> nanos - last.nanos > LATELY_NANOS);
    }

    /** What has lately turned a request of this client back: "fence", "topics", or "" for nothing. */
    public static String by(String principal, String clientId) {
        Last last = clients.get(new Client(principal, Names.kept(clientId)));
        return last == null ? "" : last.by;
    }

    // ---- bytes -----------------------------------------------------------------------------------------------

    /**
     * The name under which the bytes of a request are counted. From Produce v13 on it names its topics by ids, which no
     * authorizer can translate, so it is that which Kafka asks the authorizer about; for several topics it is SEVERAL.
     */
    static String name(List<Action> actions, List<AuthorizationResult> results) {
        String name = null;
        for (int i = 0; i < results.size(); i++) {
            String topic = Fence.writable(actions.get(i), results.get(i));
            if (topic == null) continue;
            // Where everything is allowed, the name may be anything.
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
     * Takes so many bytes that a client may send on in requests that are turned back, before its connections are muted, if they
     * are still allowed; key is the hash of whose they are.
     *
     * <p>A producer that waits before it tries again, as Kafka's own do (retry.backoff.ms, 0.1 to 1 s), stays within it
     * and is not muted; one that doesn't has used it up at once. No request takes more than a second of it, however
     * large: a mute lets one request a second through, too. Each slot holds until when its bytes are paid for (the
     * generic cell rate algorithm). Clients whose keys have one hash share a slot: one may be muted for the other's bytes.
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
