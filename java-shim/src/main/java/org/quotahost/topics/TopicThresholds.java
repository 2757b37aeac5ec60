package org.quotahost.topics;

import java.util.Collection;
import java.util.Map;
import java.util.Set;

/**
 * What this broker expects to take in, in bytes/s ("Broker side quota (V1)", low level design, 1): in all, of the
 * topics that have a threshold of their own, and of each other topic an equal share of what they leave.
 *
 * @param total of all topics
 * @param own by topic; their sum is at most the total (settings_topics.py)
 * @param spared topics that are never turned back, and so have no share; nor have those that begin with "__"
 */
record TopicThresholds(double total, Map<String, Double> own, Set<String> spared) {
    /** Whether a topic is never turned back: consumers' offsets, transactions, the brokers' snapshots. */
    boolean spares(String topic) {
        return topic.startsWith("__") || spared.contains(topic);
    }

    /** What each topic without a threshold is expected to take in, if these are the broker's topics. */
    double share(Collection<String> topics) {
        long others = topics.stream().filter(topic -> !spares(topic) && !own.containsKey(topic)).count();
        return left() / Math.max(1, others);
    }

    /** What a topic is expected to take in, by the share of those without a threshold. */
    double expected(String topic, double share) {
        return own.getOrDefault(topic, share);
    }

    private double left() {
        return Math.max(0, total - own.values().stream().mapToDouble(Double::doubleValue).sorted().sum());
    }
}
