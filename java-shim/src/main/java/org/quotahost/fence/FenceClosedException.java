package org.quotahost.fence;

import org.apache.kafka.common.errors.NotEnoughReplicasException;

/**
 * The answer to a produce request that a closed fence turns back.
 *
 * <p>Clients get the error NOT_ENOUGH_REPLICAS. After it librdkafka and Kafka's own producer send the request again,
 * without asking for new metadata; THROTTLING_QUOTA_EXCEEDED would be fatal to librdkafka. An ApiException has no stack
 * trace, so one instance serves all requests.
 */
final class FenceClosedException extends NotEnoughReplicasException implements FenceError {
    private static final long serialVersionUID = 1L;
    static final FenceClosedException INSTANCE = new FenceClosedException();

    private FenceClosedException() {
        super("quotahost has paused writing, since disks of this cluster are full or their state is unknown;"
                + " try again");
    }
}
