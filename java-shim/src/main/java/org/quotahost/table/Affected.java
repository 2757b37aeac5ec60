package org.quotahost.table;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.Fence;

/**
 * The affected topics, where each lies, and which of them are held; never changed once it is made.
 *
 * <p>One follows the other as topics come and go; all of them keep their marks in the same place.
 */
final class Affected implements Fence.Affected {
    private final Map<String, String> places;
    private final Set<String> held;
    private final Marks marks;

    /** From the arrays in which the host hands them over (QuotaTable.factor). */
    Affected(String[] topics, String[] places, boolean[] held, Marks marks) {
        if (topics.length != places.length || topics.length != held.length) {
            throw new IllegalArgumentException("a place and a flag for each topic");
        }
        this.places = new HashMap<>(topics.length * 2);
        this.held = new HashSet<>();
        this.marks = marks;
        for (int i = 0; i < topics.length; i++) {
            this.places.put(topics[i], places[i]);
            if (held[i]) this.held.add(topics[i]);
        }
    }

    boolean affects(String topic) {
        return places.containsKey(topic);
    }

    boolean holds(String topic) {
        return held.contains(topic);
    }

    @Override
    public boolean mark(KafkaPrincipal principal, String clientId, String topic) {
        if (!affects(topic)) return false;
        marks.mark(principal.getName(), clientId == null ? "" : clientId, topic);
        return holds(topic);
    }

    /** Where a topic has its replica, in words for an operator; "" for a topic that isn't affected. */
    String place(String topic) {
        return places.getOrDefault(topic, "");
    }

    boolean holdsAll() {
        return held.size() == places.size();
    }

    int size() {
        return places.size();
    }
}
