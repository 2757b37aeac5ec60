package org.quotahost.table;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.AffectedTopics;

/**
 * The affected topics, where each lies, and which of them are held; never changed once it is made.
 *
 * <p>One follows the other as topics come and go; all of them keep their marks in the same place.
 */
final class Affected implements AffectedTopics {
    private final Map<String, String> places;
    private final Set<String> held;
    private final Marks marks;

    private Affected(Map<String, String> places, Set<String> held, Marks marks) {
        this.places = places;
        this.held = held;
        this.marks = marks;
    }

    /** From the arrays in which the host hands them over (QuotaTable.factor). */
    static Affected of(String[] topics, String[] places, boolean[] held, Marks marks) {
        if (topics.length != places.length || topics.length != held.length) {
            throw new IllegalArgumentException("a place and a flag for each topic");
        }
        Map<String, String> where = new HashMap<>(topics.length * 2);
        Set<String> turnedBack = new HashSet<>();
        for (int i = 0; i < topics.length; i++) {
            where.put(topics[i], places[i]);
            if (held[i]) turnedBack.add(topics[i]);
        }
        return new Affected(where, turnedBack, marks);
    }

    @Override
    public boolean affects(String topic) {
        return places.containsKey(topic);
    }

    @Override
    public boolean holds(String topic) {
        return held.contains(topic);
    }

    @Override
    public void mark(KafkaPrincipal principal, String clientId, String topic) {
        marks.mark(principal.getName(), clientId == null ? "" : clientId, topic);
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
