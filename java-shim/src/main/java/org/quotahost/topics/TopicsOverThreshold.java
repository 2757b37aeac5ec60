package org.quotahost.topics;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.fence.Fence;
import org.quotahost.fence.Refusal;
import org.quotahost.fence.TurnedBackTopics;

/**
 * The topics that take in more than is expected at this moment, and the error for requests to them.
 *
 * <p>TopicQuotas makes a new one whenever the topics change and hands it to the fence; request threads read it.
 *
 * @param topics by name, each with the counter of its requests
 * @param answer the error (TopicQuotaError)
 */
record TopicsOverThreshold(Map<String, TopicUse> topics, RuntimeException answer) implements TurnedBackTopics {
    static final LongAdder rejections = new LongAdder();
    static final LongAdder shadowed = new LongAdder();
    static final LongAdder rejectedBytes = new LongAdder();

    @Override
    public RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        TopicUse over = null;
        boolean counts = false;
        for (int i = 0; i < results.size(); i++) {
            String topic = Fence.writable(actions.get(i), results.get(i));
            if (topic == null) continue;
            TopicUse use = topics.get(topic);
            if (use == null) continue;
            use.countTurnedBack();
            if (use.inShadow()) counts = true;
            else if (over == null) over = use;
        }
        if (over == null) {
            if (counts) shadowed.increment();
            return null;
        }
        rejections.increment();
        Refusal.note(context, actions, results, over.topic, over.allowance(), rejectedBytes);
        return answer;
    }
}
