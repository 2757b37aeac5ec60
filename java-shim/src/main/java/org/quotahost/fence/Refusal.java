package org.quotahost.fence;

import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.internals.Internals;
import org.quotahost.internals.Mute;
import org.quotahost.internals.Requests;

/**
 * What follows once a request is turned back: its bytes and its client are noted, and if its principal has used up its
 * allowance, the connection is muted.
 *
 * <p>Without that a client that tries again at once would make the broker read as much as the network carries: the
 * reason why KIP-13 rejects an error as the answer to a client over its quota. The principal counts and not the
 * client-id, which is only a claim.
 */
public final class Refusal {
    private static final Allowance ALLOWANCE = new Allowance(System.nanoTime());

    private Refusal() {}

    /**
     * Notes that the request which this thread handles is turned back.
     *
     * @param results what the inner authorizer answered to the actions, in their order
     * @param topic for whose sake, "" for that of the closed fence
     * @param bytesPerSecond what its principal may send on for that topic
     * @param counter gets the bytes of its record batches
     */
    public static void note(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results,
            String topic, double bytesPerSecond, LongAdder counter) {
        try {
            String clientId = context.clientId() == null ? "" : context.clientId();
            TurnedBack.note(new TurnedBack.Client(context.principal().getName(), clientId),
                    new TurnedBack.Last(topic.isEmpty() ? "fence" : "topics", System.nanoTime()));
            counter.add(TurnedBack.count(actions, results));
            long bytes = Requests.bytes();
            if (bytes == Requests.UNKNOWN || Internals.MUTE.get() == null) return;
            int key = 31 * context.principal().hashCode() + topic.hashCode();
            if (ALLOWANCE.take(key, bytes, bytesPerSecond, System.nanoTime())) return;
            if (Requests.release()) Mute.mark(context.principal());
        } catch (Throwable e) { // a later Kafka keeps requests in another way; the answer that the client gets is the same
            Internals.REQUESTS.failed(e.toString());
        }
    }

    /**
     * How many bytes a client may send on in requests that are turned back, before its connections are muted.
     *
     * <p>A producer that waits before it tries again, as Kafka's own do (retry.backoff.ms, 0.1 to 1 s), stays within it
     * and is not muted; one that doesn't has used it up at once. No request takes more than a second of it, however
     * large: a mute lets one request a second through, too. Each slot holds until when its bytes are paid for (the
     * generic cell rate algorithm). Clients share a slot if their keys have one hash: then the one may be muted for what
     * the other sends, for one window at a time.
     */
    static final class Allowance {
        /** What a client may save up, in seconds of its rate. */
        static final long SAVED_SECONDS = 4;
        private static final long SECOND = 1_000_000_000L;
        private static final long SAVED_NANOS = SAVED_SECONDS * SECOND;
        private static final int SLOTS = 4_096;

        private final AtomicLongArray paidUntil = new AtomicLongArray(SLOTS);
        private final long origin;

        /** All times are after the origin, both by System.nanoTime. */
        Allowance(long origin) {
            this.origin = origin;
        }

        /**
         * Takes so many bytes, if they are still allowed.
         *
         * @param key the hash of whose bytes they are
         * @param bytesPerSecond what is allowed; for 0 nothing is
         * @param nanos now, by System.nanoTime
         */
        boolean take(int key, long bytes, double bytesPerSecond, long nanos) {
            if (!(bytesPerSecond > 0)) return false;
            int slot = (key ^ key >>> 12 ^ key >>> 24) & SLOTS - 1;
            long now = nanos - origin;
            long cost = (long) Math.min(SECOND, bytes / bytesPerSecond * SECOND);
            while (true) {
                long before = paidUntil.get(slot);
                long after = Math.max(before, now) + cost;
                if (after - now > SAVED_NANOS) return false;
                if (paidUntil.compareAndSet(slot, before, after)) return true;
            }
        }
    }
}
