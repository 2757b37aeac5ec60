package org.quotahost.topics;

import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.quotahost.fence.FenceError;

/**
 * The answers to a produce request that topic quotas turn back, by topics.reject.error. An ApiException has no stack
 * trace, so one instance serves all requests.
 */
final class TopicQuotaError {
    private static final String SAID =
            "quotahost: this broker and the topic both take in more than is expected (topics.*); nothing was appended";

    private TopicQuotaError() {}

    /** The error of that name; IllegalArgumentException for any other. */
    static RuntimeException of(String name) {
        return switch (name) {
            case "NOT_ENOUGH_REPLICAS" -> new TryAgain();
            case "THROTTLING_QUOTA_EXCEEDED" -> new Throttled();
            case "POLICY_VIOLATION" -> new Dropped();
            default -> throw new IllegalArgumentException(name + " is no error for topic quotas");
        };
    }

    /** Every client tries it again. */
    private static final class TryAgain extends NotEnoughReplicasException implements FenceError {
        private static final long serialVersionUID = 1L;

        TryAgain() {
            super(SAID);
        }
    }

    /** Kafka's own producer tries it again; librdkafka gives the messages up. */
    private static final class Throttled extends ThrottlingQuotaExceededException implements FenceError {
        private static final long serialVersionUID = 1L;

        Throttled() {
            super(0, SAID);
        }
    }

    /** Every client gives the records up. */
    private static final class Dropped extends PolicyViolationException implements FenceError {
        private static final long serialVersionUID = 1L;

        Dropped() {
            super(SAID);
        }
    }
}
