package org.quotahost.topics;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.fence.TurnedBackTopics;

/** The topics whose produce requests are turned back now, and with what; replaced as a whole, read by request threads. */
public record TopicsOverThreshold(Map<String, TopicUse> topics, RuntimeException error) implements TurnedBackTopics {
    public static final LongAdder rejections = new LongAdder();
    public static final LongAdder shadowed = new LongAdder();

    /** Why a request is turned back, null if none of the topics that it may write to is over. */
    @Override
    public RuntimeException error(List<Action> actions, List<AuthorizationResult> results, boolean shadow) {
        TopicUse over = null;
        for (int i = 0; i < results.size(); i++) {
            var resource = actions.get(i).resourcePattern();
            if (resource.resourceType() != ResourceType.TOPIC || results.get(i) != AuthorizationResult.ALLOWED) continue;
            TopicUse use = topics.get(resource.name());
            if (use != null) use.count();
            if (over == null) over = use;
        }
        if (over == null) return null;
        (shadow ? shadowed : rejections).increment();
        return shadow ? null : error;
    }
}
