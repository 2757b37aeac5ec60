package org.quotahost.fence;

import org.apache.kafka.common.errors.NotEnoughReplicasException;

/**
 * The answer to a produce request that the fence turns back. Clients see NOT_ENOUGH_REPLICAS, which librdkafka and
 * Kafka's own producer try again without asking for new metadata; THROTTLING_QUOTA_EXCEEDED is fatal to librdkafka.
 * An ApiException has no stack trace: one instance serves all.
 */
final class FenceClosedException extends NotEnoughReplicasException implements FenceError {
    private static final long serialVersionUID = 1L;
    static final FenceClosedException INSTANCE = new FenceClosedException();

    private FenceClosedException() {
        super("quotahost has paused writing, since disks of this cluster are full or their state is unknown; try again");
    }
}
