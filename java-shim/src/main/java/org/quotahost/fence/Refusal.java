package org.quotahost.fence;

import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * What follows once a request is turned back: its bytes and its client are noted, and if its principal has used up its allowance,
 * the connection is muted.
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
            TurnedBackClients.note(context.principal().getName(), clientId, !topic.isEmpty());
            counter.add(TurnedBackBytes.count(actions, results));
            if (!isAllowed(context.principal(), topic, bytesPerSecond) && CurrentRequest.release()) Mute.mark(context.principal());
        } catch (Throwable e) {
            // A later Kafka keeps requests in another way. The answer that the client gets is the same.
        }
    }

    private static boolean isAllowed(KafkaPrincipal principal, String topic, double bytesPerSecond) {
        long bytes = CurrentRequest.bytes();
        int key = 31 * principal.hashCode() + topic.hashCode();
        return bytes == CurrentRequest.UNKNOWN || ALLOWANCE.take(key, bytes, bytesPerSecond, System.nanoTime());
    }
}
