package org.quotahost.topics;

import java.util.Collection;
import java.util.Map;
import java.util.Set;

/**
 * How many bytes/s this broker expects to take in ("Broker side quota (V1)", low level design, 1): of all topics
 * together, of each topic with a threshold of its own, and of each other topic an equal share of the rest.
 *
 * @param total bytes/s of all topics together
 * @param own bytes/s by topic; Python checks that their sum is at most the total (quotahost.settings.topics)
 * @param spared topics that are never turned back and so have no share, by their whole names
 * @param inShadow topics whose thresholds are not enforced, only counted; null for all topics
 * @param answer the error with which requests are turned back
 */
record TopicThresholds(double total, Map<String, Double> own, Set<String> spared, Set<String> inShadow,
        RuntimeException answer) {
    /** The rule by which a topic's threshold is in shadow, as the property shadow names it; null if it is enforced. */
    String shadowOf(String topic) {
        return inShadow == null ? "topics" : inShadow.contains(topic) ? "topic." + topic : null;
    }

    /** Whether requests to a topic are never turned back. */
    boolean spares(String topic) {
        return spared.contains(topic);
    }

    /** The bytes/s expected of each topic without a threshold of its own, if these are the broker's topics. */
    double share(Collection<String> topics) {
        long others = topics.stream().filter(topic -> !spares(topic) && !own.containsKey(topic)).count();
        return left() / Math.max(1, others);
    }

    /** The bytes/s expected of a topic: its own threshold, or else this share. */
    double expected(String topic, double share) {
        return own.getOrDefault(topic, share);
    }

    private double left() {
        return Math.max(0, total - own.values().stream().mapToDouble(Double::doubleValue).sorted().sum());
    }
}
