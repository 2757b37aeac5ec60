package org.quotahost.topics;

import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.quotahost.fence.FenceError;

/**
 * The errors with which topic quotas turn produce requests back; the property topics.reject.error chooses one.
 *
 * <p>They differ in what clients do next. An ApiException has no stack trace, so one instance serves all requests.
 */
final class TopicQuotaError {
    private static final String MESSAGE =
            "quotahost: this broker and the topic both take in more than is expected (topics.*); nothing was appended";

    private TopicQuotaError() {}

    /** The error of that name; IllegalArgumentException for any other. */
    static RuntimeException of(String name) {
        return switch (name) {
            case "NOT_ENOUGH_REPLICAS" -> new NotEnoughReplicas();
            case "THROTTLING_QUOTA_EXCEEDED" -> new ThrottlingQuotaExceeded();
            case "POLICY_VIOLATION" -> new PolicyViolation();
            default -> throw new IllegalArgumentException(name + " is no error for topic quotas");
        };
    }

    /** Every client sends the request again. */
    private static final class NotEnoughReplicas extends NotEnoughReplicasException implements FenceError {
        private static final long serialVersionUID = 1L;

        NotEnoughReplicas() {
            super(MESSAGE);
        }
    }

    /** Kafka's own producer sends the request again; librdkafka gives the messages up. */
    private static final class ThrottlingQuotaExceeded extends ThrottlingQuotaExceededException implements FenceError {
        private static final long serialVersionUID = 1L;

        ThrottlingQuotaExceeded() {
            super(0, MESSAGE);
        }
    }

    /** Every client gives the records up. */
    private static final class PolicyViolation extends PolicyViolationException implements FenceError {
        private static final long serialVersionUID = 1L;

        PolicyViolation() {
            super(MESSAGE);
        }
    }
}
