package org.quotahost.fence;

import java.util.List;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * The topics whose produce requests are turned back at this moment, and with which error.
 *
 * <p>The package topics implements it and hands a new one to the fence whenever the topics change, so that the fence
 * knows nothing of meters and thresholds. Request threads call it, but only while there are such topics.
 */
public interface TurnedBackTopics {
    /**
     * The error with which a request is turned back, or null to let it through.
     *
     * @param actions what the request asks for, in the order of results
     * @param results what the inner authorizer answered; only topics that it allowed may be turned back
     * @param shadow the request is only counted, and null is answered
     */
    RuntimeException error(List<Action> actions, List<AuthorizationResult> results, boolean shadow);
}
