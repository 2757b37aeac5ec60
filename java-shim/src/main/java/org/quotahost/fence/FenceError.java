package org.quotahost.fence;

import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.quotahost.internals.BrokerLog;

/**
 * The errors with which requests are turned back, so that the broker's log contains none of them (BrokerLog).
 *
 * <p>They differ in what clients do next. An ApiException has no stack trace, so one instance serves all requests.
 */
public interface FenceError extends BrokerLog.LeftOut {
    /** The error that Kafka's protocol knows by this name; IllegalArgumentException for any but these three. */
    static RuntimeException of(String name, String message) {
        return switch (name) {
            case "NOT_ENOUGH_REPLICAS" -> new NotEnoughReplicas(message);
            case "THROTTLING_QUOTA_EXCEEDED" -> new ThrottlingQuotaExceeded(message);
            case "POLICY_VIOLATION" -> new PolicyViolation(message);
            default -> throw new IllegalArgumentException(name + " is no error of the fence's");
        };
    }

    /** Every client sends the request again: librdkafka and Kafka's own producer, without asking for new metadata. */
    final class NotEnoughReplicas extends NotEnoughReplicasException implements FenceError {
        private static final long serialVersionUID = 1L;

        NotEnoughReplicas(String message) {
            super(message);
        }
    }

    /** Kafka's own producer sends the request again; librdkafka gives the messages up. */
    final class ThrottlingQuotaExceeded extends ThrottlingQuotaExceededException implements FenceError {
        private static final long serialVersionUID = 1L;

        ThrottlingQuotaExceeded(String message) {
            super(0, message);
        }
    }

    /** Every client gives up, and hands its caller the message. */
    final class PolicyViolation extends PolicyViolationException implements FenceError {
        private static final long serialVersionUID = 1L;

        PolicyViolation(String message) {
            super(message);
        }
    }
}
