package org.quotahost.table;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.IntSupplier;
import java.util.function.Predicate;
import org.quotahost.util.Escape;

/**
 * Who asked to write to an affected topic lately, and to which one last.
 *
 * <p>A mark is a client's, by principal and client-id. It lives LIFE_BEATS after the last such request, and ends with its
 * topic. A client-id is only a claim, so there are bounds: a principal with MOST_CLIENT_IDS marked ones, or one for which
 * there is no place, is marked as a whole; if there is no place for another principal, everybody is. Names that are too
 * long to be kept (Names) share one mark. A mark for more than it is meant for ends like any other.
 *
 * <p>Request threads read and write it. Asking takes no lock and allocates nothing, nor does a mark that is there already.
 */
final class Marks {
    /** 15 s. */
    static final int LIFE_BEATS = (int) (15_000 / QuotaTable.BEAT_MS);
    static final int MOST_CLIENT_IDS = 1_000;
    /** In place of names that are too long. Who really has this name shares their mark. */
    private static final String LONG = "<long>";

    private final ConcurrentHashMap<String, OfPrincipal> principals = new ConcurrentHashMap<>();
    /** How many principals and client-ids there are. */
    private final AtomicInteger size = new AtomicInteger();
    private final IntSupplier most;
    private final AtomicReference<Mark> everybody = new AtomicReference<>();
    private volatile int now;

    /**
     * The topic that was asked for last, and the beat of that; or OVER in its place.
     *
     * <p>A request may renew a mark while the sweep ends it. One writes the topic and then reads the beat, the other writes
     * the beat and then reads the topic; so at least one of them sees the other, and no mark is lost that was renewed.
     */
    private static final class Mark {
        private static final int OVER = Integer.MIN_VALUE;

        private volatile String topic;
        private final AtomicInteger at;

        Mark(String topic, int at) {
            this.topic = topic;
            this.at = new AtomicInteger(at);
        }

        /**
         * Answers false if the mark is over: then there must be another one.
         *
         * <p>It doesn't write on each request: that moves the cache line away from the other request threads.
         */
        boolean renew(String asked, int beat) {
            if (!topic.equals(asked)) topic = asked;
            int last = at.get();
            if (last == beat) return true;
            return last != OVER && (at.compareAndSet(last, beat) || at.get() != OVER);
        }

        /** Ends the mark if it is too old or its topic is no longer affected. Answers whether it is over. */
        boolean end(int beat, Predicate<String> affected) {
            while (true) {
                int last = at.get();
                if (isAffected(last, beat, affected)) return false;
                if (!at.compareAndSet(last, OVER)) continue; // a request renewed it
                if (!isAffected(last, beat, affected)) return true;
                at.set(last); // a request renewed it by another topic
            }
        }

        private boolean isAffected(int last, int beat, Predicate<String> affected) {
            return affected.test(topic) && beat - last <= LIFE_BEATS;
        }
    }

    private static final class OfPrincipal {
        final ConcurrentHashMap<String, Mark> clients = new ConcurrentHashMap<>(2);
        volatile Mark whole;
    }

    /** @param most how many principals and client-ids are marked by name */
    Marks(IntSupplier most) {
        this.most = most;
    }

    // ---- request threads -------------------------------------------------------------------------------------

    void mark(String principal, String clientId, String topic) {
        String name = Names.keepsPrincipal(principal) ? principal : LONG;
        String id = Names.keeps(clientId) ? clientId : LONG;
        OfPrincipal one = principals.get(name);
        Mark mark = one == null ? null : one.clients.get(id);
        if (mark == null && one != null && one.clients.size() >= MOST_CLIENT_IDS) mark = one.whole;
        if (mark == null && size.get() >= most.getAsInt()) mark = one == null ? everybody.get() : one.whole;
        if (mark == null || !mark.renew(topic, now)) add(name, id, topic, now);
    }

    /** Adds a mark; compute() since sweep() must not take the principal away meanwhile. */
    private void add(String name, String id, String topic, int beat) {
        OfPrincipal added = principals.compute(name, (key, before) -> {
            if (before == null && !takePlace()) return null;
            OfPrincipal one = before == null ? new OfPrincipal() : before;
            boolean place = one.clients.containsKey(id) || one.clients.size() < MOST_CLIENT_IDS && takePlace();
            if (place) one.clients.put(id, new Mark(topic, beat));
            else one.whole = renewed(one.whole, topic, beat);
            return one;
        });
        if (added == null) everybody.set(renewed(everybody.get(), topic, beat));
    }

    private boolean takePlace() {
        if (size.incrementAndGet() <= most.getAsInt()) return true;
        size.decrementAndGet();
        return false;
    }

    private static Mark renewed(Mark mark, String topic, int beat) {
        return mark != null && mark.renew(topic, beat) ? mark : new Mark(topic, beat);
    }

    boolean has(String principal, String clientId) {
        return find(principal, clientId) != null;
    }

    /** The affected topic for which a client is marked, or null. */
    String topic(String principal, String clientId) {
        Mark mark = find(principal, clientId);
        return mark == null ? null : mark.topic;
    }

    private Mark find(String principal, String clientId) {
        OfPrincipal one = principals.get(Names.keepsPrincipal(principal) ? principal : LONG);
        if (one != null) {
            Mark mark = one.clients.get(Names.keeps(clientId) ? clientId : LONG);
            if (mark != null) return mark;
            if (one.whole != null) return one.whole;
        }
        return everybody.get();
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /** How many principals and client-ids are marked by name. */
    int size() {
        return size.get();
    }

    /** Principal, client-id and topic of at most so many clients that are marked by name, as lines (Escape). */
    List<String> lines(int most) {
        List<String> lines = new ArrayList<>();
        for (Map.Entry<String, OfPrincipal> entry : principals.entrySet()) {
            for (Map.Entry<String, Mark> client : entry.getValue().clients.entrySet()) {
                if (lines.size() == most) return lines;
                lines.add(Escape.fields(entry.getKey(), client.getKey(), client.getValue().topic));
            }
        }
        return lines;
    }

    void now(int beat) {
        now = beat;
    }

    /**
     * Ends the marks that are too old and those whose topic is no longer affected.
     *
     * @param ended gets principal and client-id of each; null in place of a client-id for a whole principal, in place of
     *     both for everybody
     */
    void sweep(Predicate<String> affected, BiConsumer<String, String> ended) {
        for (Map.Entry<String, OfPrincipal> entry : principals.entrySet()) {
            sweep(entry.getKey(), entry.getValue(), affected, ended);
        }
        Mark all = everybody.get();
        if (all != null && all.end(now, affected) && everybody.compareAndSet(all, null)) ended.accept(null, null);
    }

    private void sweep(String name, OfPrincipal one, Predicate<String> affected, BiConsumer<String, String> ended) {
        for (Map.Entry<String, Mark> client : one.clients.entrySet()) {
            Mark mark = client.getValue();
            if (mark.end(now, affected) && remove(name, client.getKey(), mark)) ended.accept(name, client.getKey());
        }
        Mark whole = one.whole;
        if (whole != null && whole.end(now, affected) && remove(name, null, whole)) ended.accept(name, null);
    }

    /**
     * Takes a mark away that is over, and with its last one the principal; client-id null for that of the whole principal.
     * Answers false if another one has its place.
     */
    private boolean remove(String name, String id, Mark mark) {
        boolean[] removed = new boolean[1];
        principals.computeIfPresent(name, (key, one) -> {
            if (id != null && one.clients.remove(id, mark)) {
                removed[0] = true;
                size.decrementAndGet();
            } else if (one.whole == mark) {
                removed[0] = true;
                one.whole = null;
            }
            if (!one.clients.isEmpty() || one.whole != null) return one;
            size.decrementAndGet();
            return null;
        });
        return removed[0];
    }
}
