package org.quotahost.fence;

import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * What follows once a request is turned back: its bytes are counted, and if its principal has used up its allowance,
 * the connection is muted.
 *
 * <p>Without that a client that tries again at once would make the broker read as much as the network carries: the
 * reason why KIP-13 rejects an error as the answer to a client over its quota. The principal counts and not the
 * client-id, which is only a claim.
 */
public final class Refusal {
    /** What a request counts as where its size is not known: Kafka's default batch.size. */
    private static final long ASSUMED_BYTES = 16_384;
    private static final Allowance ALLOWANCE = new Allowance(System.nanoTime());

    private Refusal() {}

    /**
     * Notes that the request which this thread handles is turned back.
     *
     * @param topic for whose sake, "" for that of the closed fence
     * @param bytesPerSecond what its principal may send on for that topic
     * @param counter gets the bytes of its record batches
     */
    public static void note(AuthorizableRequestContext context, List<Action> actions, String topic,
            double bytesPerSecond, LongAdder counter) {
        int key = 31 * context.principal().hashCode() + topic.hashCode();
        if (!ALLOWANCE.take(key, charged(), bytesPerSecond, System.nanoTime())) Mute.mark(context.principal());
        try {
            counter.add(TurnedBackBytes.count(actions));
        } catch (Throwable e) {
            // A later Kafka keeps requests in another way; the client's answer counts more than a meter.
        }
    }

    private static long charged() {
        long bytes = CurrentRequest.bytes();
        return bytes == CurrentRequest.UNKNOWN ? ASSUMED_BYTES : bytes;
    }
}
