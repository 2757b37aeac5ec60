package org.quotahost.table;

import static java.util.Comparator.comparingDouble;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.IntSupplier;
import java.util.function.Predicate;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.Fence;
import org.quotahost.table.QuotaTable.SlowedTopics;
import org.quotahost.util.Names;

/**
 * The clients that asked to write to an affected topic in the last 15 s, each with the latest such topic.
 *
 * <p>A mark belongs to a client, that is to a principal and client-id. It lives for LIFE_BEATS after the last such request, and
 * ends when its topic is no longer affected. The topic decides the client's group. If a client writes to topics of several
 * groups, the smallest factor holds: a topic of another group replaces the topic of a living mark only if the other group's
 * factor is smaller (NEAR). When a mark moves to another group, it ends for the tags of the first group.
 *
 * <p>A client-id is only a claim, so marks are bounded: a principal with MOST_CLIENT_IDS marked client-ids is marked as a
 * whole. Names that are too long to be kept (Names) share one mark.
 *
 * <p>Request threads read and write marks. A look-up takes no lock and allocates nothing, and neither does the renewal of a
 * mark. A client is looked up on the thread that has just marked it. If the sweep removes the mark in between, this one request
 * gets the client's own tags, and the next request marks the client again.
 */
final class Marks {
    /** 15 s. */
    static final int LIFE_BEATS = (int) (15_000 / QuotaTable.BEAT_MS);
    static final int MOST_CLIENT_IDS = 1_000;
    /**
     * A group stays the one that counts until another's factor is 0 or smaller by more than this. Kafka measures a client apart
     * for each group, so as three nearly equal factors crossed again and again, a client got 0.4 to 2 times its limit.
     */
    private static final double NEAR = 0.03;
    /** The key of a mark for a whole principal; it is longer than any client-id that is kept. */
    private static final String WHOLE = "*".repeat(Names.LONGEST_CLIENT_ID + 1);
    private static final ConcurrentHashMap<String, Mark> EMPTY = new ConcurrentHashMap<>();

    /** By principal and client-id. */
    private final ConcurrentHashMap<String, ConcurrentHashMap<String, Mark>> marks = new ConcurrentHashMap<>();
    private final IntSupplier clock;
    private final BiConsumer<String, String> ended;
    /** The beat at which a mark last began or ended, or a marked client got slowed tags that no client had. */
    private final AtomicInteger changedAt = new AtomicInteger(Tags.NEVER);

    private static final class Mark {
        private volatile String topic;
        private volatile int at;

        Mark(String topic, int at) {
            this.topic = topic;
            this.at = at;
        }

        /**
         * Renews the mark, and returns whether it moves to another group. It writes only what has changed, since a write
         * takes the cache line away from the other request threads.
         */
        boolean renew(String asked, int beat, Affected affected) {
            boolean goesOver = false;
            if (!topic.equals(asked)) {
                AffectedTopic one = affected.topics.get(topic), two = affected.topics.get(asked);
                goesOver = one == null || one.of != two.of;
                if (goesOver && one != null && one.stays(two) && beat - at < LIFE_BEATS) return false;
                topic = asked;
            }
            if (beat - at > 0) at = beat;
            return goesOver;
        }

        boolean isOver(int beat, Predicate<String> affected) {
            return !affected.test(topic) || beat - at > LIFE_BEATS;
        }
    }

    record AffectedTopic(String place, SlowedTopics of, boolean held) {
        /** Returns whether its group stays the one that counts beside another group. */
        boolean stays(AffectedTopic other) {
            double factor = other.of.factor();
            return other.held ? held : of.factor() <= factor + (factor > 0 ? NEAR : 0);
        }
    }

    /**
     * The affected topics; immutable.
     *
     * @param groups by name; if VOLUMES is missing, the volumes' factor is for all clients
     * @param others the error for all other topics while the fence is closed, or null
     */
    record Affected(Map<String, AffectedTopic> topics, Map<String, SlowedTopics> groups, RuntimeException others, Marks marks)
            implements Fence.Affected {
        @Override
        public RuntimeException mark(KafkaPrincipal principal, String clientId, String topic) {
            AffectedTopic asked = topics.get(topic);
            if (asked == null) return others;
            marks.mark(principal.getName(), clientId, topic, this);
            return asked.held ? asked.of.error() : others;
        }

        boolean holds() {
            return others != null || topics.values().stream().anyMatch(AffectedTopic::held);
        }

        /** Returns the name of a topic's group; null if the topic is not affected. */
        String group(String topic) {
            AffectedTopic found = topics.get(topic);
            return found == null ? null : found.of.group();
        }
    }

    /**
     * @param clock the table's, in beats
     * @param ended receives the principal and client-id of each mark that ends; the client-id is null for a whole principal
     */
    Marks(IntSupplier clock, BiConsumer<String, String> ended) {
        this.clock = clock;
        this.ended = ended;
    }

    /** @param before the affected topics until now, or null */
    Affected affected(double ofVolumes, List<SlowedTopics> all, Affected before) {
        Map<String, SlowedTopics> groups = new HashMap<>();
        Map<String, AffectedTopic> topics = new HashMap<>();
        // The largest factor comes first, so that the smallest one remains for a topic of several groups.
        for (SlowedTopics each : all.stream().sorted(comparingDouble(SlowedTopics::factor).reversed()).toList()) {
            groups.put(each.group(), each);
            for (int i = 0; i < each.topics().length; i++) {
                String topic = each.topics()[i];
                topics.merge(topic, new AffectedTopic(each.places()[i], each, each.held().contains(topic)), (one, two) ->
                        before != null && one.of.group().equals(before.group(topic)) && one.stays(two) ? one : two);
            }
        }
        RuntimeException others = ofVolumes > 0 || groups.containsKey(SlowedTopics.VOLUMES) ? null : Fence.CLOSED;
        return new Affected(topics, groups, others, this);
    }

    // ---- request threads -------------------------------------------------------------------------------------

    void mark(String principal, String clientId, String topic, Affected affected) {
        String name = principal(principal);
        String id = Names.kept(clientId);
        Map<String, Mark> ofPrincipal = marks.getOrDefault(name, EMPTY);
        Mark mark = ofPrincipal.get(id);
        if (mark == null && ofPrincipal.size() >= MOST_CLIENT_IDS) mark = ofPrincipal.get(WHOLE);
        if (mark == null) {
            add(name, id, topic);
        } else if (mark.renew(topic, clock.getAsInt(), affected) && ofPrincipal.get(id) == mark) {
            ended.accept(name, id); // only for this client-id: if several share the mark, a walk through them would delay a request
            changed();
        }
    }

    /** A thread that was suspended may come late, so the latest beat counts. */
    void changed() {
        changedAt.accumulateAndGet(clock.getAsInt(), Math::max);
    }

    int changedAt() {
        return changedAt.get();
    }

    private static String principal(String name) {
        return Names.keepsPrincipal(name) ? name : Names.LONG;
    }

    /** Adds a mark. compute() keeps the sweep from removing the principal meanwhile. */
    private void add(String name, String id, String topic) {
        changed();
        marks.compute(name, (key, before) -> {
            ConcurrentHashMap<String, Mark> ofPrincipal = before == null ? new ConcurrentHashMap<>(2) : before;
            boolean place = ofPrincipal.containsKey(id) || ofPrincipal.size() < MOST_CLIENT_IDS;
            ofPrincipal.put(place ? id : WHOLE, new Mark(topic, clock.getAsInt()));
            return ofPrincipal;
        });
    }

    /** Returns the name of the group for which a client is marked, or null. */
    String group(String principal, String clientId, Affected affected) {
        Mark mark = affected == null ? null : find(principal, clientId);
        return mark == null ? null : affected.group(mark.topic);
    }

    /** Returns the topic of a client's mark, or null. */
    String topic(String principal, String clientId) {
        Mark mark = find(principal, clientId);
        return mark == null ? null : mark.topic;
    }

    private Mark find(String principal, String clientId) {
        Map<String, Mark> ofPrincipal = marks.getOrDefault(principal(principal), EMPTY);
        Mark mark = ofPrincipal.get(Names.kept(clientId));
        return mark != null ? mark : ofPrincipal.get(WHOLE);
    }

    // ---- the watch and readers -------------------------------------------------------------------------------

    int size() {
        return marks.values().stream().mapToInt(Map::size).sum();
    }

    /** Returns principal, client-id and topic of all clients that are marked by name. */
    List<String[]> list(int atMost) {
        List<String[]> marked = new ArrayList<>();
        marks.forEach((name, ofPrincipal) -> ofPrincipal.forEach((id, mark) -> {
            if (marked.size() < atMost && !id.equals(WHOLE)) marked.add(new String[] {name, id, mark.topic});
        }));
        return marked;
    }

    /** Ends the marks that are too old, and those whose topic is no longer affected or has moved to another group. */
    void sweep(Predicate<String> affected) {
        int now = clock.getAsInt();
        for (String name : marks.keySet()) {
            Map<String, Mark> ofPrincipal = marks.get(name); // only the sweep removes principals
            List<String> over = new ArrayList<>(0);
            ofPrincipal.forEach((id, mark) -> {
                if (mark.isOver(now, affected)) over.add(id);
            });
            if (!over.isEmpty()) end(name, over);
        }
    }

    /** Informs the scopes first: otherwise a client that asks for its tags in between would seem to have had its own tags before. */
    private void end(String name, List<String> over) {
        for (String id : over) ended.accept(name, id.equals(WHOLE) ? null : id);
        marks.computeIfPresent(name, (key, ofPrincipal) -> {
            over.forEach(ofPrincipal::remove);
            return ofPrincipal.isEmpty() ? null : ofPrincipal;
        });
        changed();
    }
}
