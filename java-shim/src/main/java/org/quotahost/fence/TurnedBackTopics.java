package org.quotahost.fence;

import java.util.List;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * The topics whose produce requests are turned back at this moment.
 *
 * <p>The package topics implements it and hands the fence a new one whenever the topics change, so that the fence knows
 * nothing of meters and thresholds. Request threads call it, but only while there are such topics.
 */
public interface TurnedBackTopics {
    /**
     * The error with which a request is turned back, which Refusal is told, or null to let it through.
     *
     * @param actions what the request asks for
     * @param results what the inner authorizer answered to the actions, in their order; only a topic to which the
     *     client may write can turn the request back
     */
    RuntimeException error(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results);
}
