package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * The host's work: the only way from Kafka's threads to Python, for unknown clients up to a bound, and for all that Kafka
 * reports.
 *
 * <p>Request threads post the clients that the quota table does not know, without a lock. Beyond the bound a post is dropped
 * and counted, and the client's next request posts it again. All else (client quotas, the cluster, new properties) is kept
 * until the host takes it; its size is bounded by the numbers of brokers, quotas and changes.
 */
public final class Inbox {
    /** How many clients the host takes at once (few enough to handle other events soon), and how many may wait. */
    static final int BATCH = 2_000, MOST = 65_536;
    /** How many facts the host takes at once: an answer to a child process is bounded, and there may be a million quotas. */
    static final int MOST_FACTS = 10_000;
    private static final long SECOND = 1_000_000_000L;

    /** All that the host takes at once. Python answers by position (QuotaTable.publish), so no name must survive the way back. */
    public record Batch(List<Lookup> clients, List<Event> events) {
        public static final Batch EMPTY = new Batch(List.of(), List.of());

        /**
         * Lookups have an order, so that Java's sets arrange those with the same hash as a tree: client-ids may be chosen to
         * collide.
         *
         * @param postedAt when a request first missed the client (System.nanoTime), or 0 if the host asks again by itself
         */
        public record Lookup(String principal, String clientId, long postedAt) implements Comparable<Lookup> {
            private static final Comparator<Lookup> ORDER = Comparator.comparing(Lookup::clientId)
                    .thenComparing(Lookup::principal).thenComparingLong(Lookup::postedAt);

            /** Returns whether a request waits for the answer. */
            public boolean posted() {
                return postedAt != 0;
            }

            @Override
            public int compareTo(Lookup other) {
                return ORDER.compare(this, other);
            }
        }

        public record Event(String kind, List<?> fields) {}
    }

    private final Queue<Batch.Lookup> posts = new ConcurrentLinkedQueue<>();
    /** The size of posts, minus those that are just being added; the queue's own size() walks through the whole queue. */
    private final AtomicInteger depth = new AtomicInteger();
    private final LongAdder overflow = new LongAdder();
    /** The clients posted in this second, which a take ends, and in the one before, with postedAt 0: a burst is one post. */
    private volatile Set<Batch.Lookup> recent = ConcurrentHashMap.newKeySet(), before = Set.of();
    private long recentSince = System.nanoTime();

    /**
     * The clients for which the host asks again by itself, at most as many as the table has places, and up to MOST clients that
     * an ended host took without an answer. Under the lock.
     */
    private final Set<Batch.Lookup> again = new LinkedHashSet<>();
    private final List<Batch.Event> events = new ArrayList<>();
    /** The facts that a host keeps in memory, as Kafka has reported them last: client quotas by entity, and the cluster. */
    private final Map<List<String>, List<String>> facts = new LinkedHashMap<>();
    /** The facts that the host has not taken yet. */
    private final Set<List<String>> news = new LinkedHashSet<>();

    /** Whether there is news, an event, or a client to ask again; for a thread that waits without the lock. */
    private volatile boolean eventsWait;
    /** The host's thread while it waits in take(), otherwise null. */
    private volatile Thread waiting;

    /**
     * Posts a client that the table does not know, on a request thread: normally once, and again if the host has not answered
     * for one or two seconds.
     */
    public void postClient(String principal, String clientId) {
        Batch.Lookup client = new Batch.Lookup(principal, clientId, 0);
        if (before.contains(client) || recent.contains(client)) return;
        if (depth.get() >= MOST) {
            overflow.increment();
            return;
        }
        if (!recent.add(client)) return;
        posts.add(new Batch.Lookup(principal, clientId, System.nanoTime()));
        depth.incrementAndGet(); // last: if the heap is full, nothing was added and nothing must be counted
        wake();
    }

    // ---- Kafka's metadata threads ----------------------------------------------------------------------------

    /** Posts a client quota that was set, or removed (null): bytes/s, percent or mutations/s by its type. */
    public void clientQuota(ClientQuotaType type, ClientQuotaEntity entity, Double rate) {
        List<String> user = List.of("", "");
        List<String> client = user;
        for (ClientQuotaEntity.ConfigEntity part : entity.configEntities()) {
            // The kind decides, not the name: Kafka names a default "<default>", and a user may have this name, too.
            switch (part.entityType()) {
                case USER -> user = List.of("name", part.name());
                case DEFAULT_USER -> user = List.of("default", "");
                case CLIENT_ID -> client = List.of("name", part.name());
                case DEFAULT_CLIENT_ID -> client = List.of("default", "");
            }
        }
        fact(List.of("client-quota", type.name(), user.get(0), user.get(1), client.get(0), client.get(1)),
                rate == null ? null : List.of(rate.toString()));
    }

    public void cluster(String clusterId, List<String> brokers) {
        fact(List.of("cluster"), Stream.concat(Stream.of(clusterId), brokers.stream()).toList());
    }

    /** Returns whether Kafka has reported the cluster. It does so after it has applied stored properties. */
    public synchronized boolean knowsCluster() {
        return facts.containsKey(List.of("cluster"));
    }

    /** Stores a fact; null removes it. Both callbacks of a combined node report it, so only a changed value is news. */
    private synchronized void fact(List<String> what, List<String> value) {
        if (Objects.equals(facts.get(what), value)) return;
        news.add(what); // first: the host would never get a fact that is not news
        if (value == null) facts.remove(what);
        else facts.put(what, value);
        eventArrived();
    }

    /** Posts an event of another kind: "validate", "question", "closing", or "reconfigure", which replaces an older "reconfigure". */
    public synchronized void postEvent(String kind, List<?> fields) {
        Batch.Event event = new Batch.Event(kind, fields); // first: if the heap is full, the older one stays
        events.removeIf(older -> kind.equals("reconfigure") && older.kind().equals(kind));
        events.add(event);
        eventArrived();
    }

    /** Withdraws the event with this ticket (its first field) if the host has not taken it: no thread waits for it now. */
    public synchronized void withdraw(String kind, String ticket) {
        events.removeIf(event -> event.kind().equals(kind) && event.fields().indexOf(ticket) == 0);
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /** Makes the host resolve a client of the table again, after the clients for which requests wait. */
    public synchronized void askAgain(Batch.Lookup lookup) {
        if (lookup.posted() && again.size() >= MOST) overflow.increment(); // the client's next request posts it again
        else again.add(lookup);
        eventArrived();
    }

    /** Waits for work, at most timeoutMs, and takes it. The batch is empty if nothing came. */
    public Batch take(long timeoutMs) {
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        waiting = Thread.currentThread();
        while (posts.isEmpty() && !eventsWait) {
            long left = deadline - System.nanoTime();
            if (left <= 0) break;
            LockSupport.parkNanos(this, left);
        }
        waiting = null;
        synchronized (this) {
            // The host gets no clients until it knows all facts.
            List<Batch.Lookup> clients = news.size() > MOST_FACTS ? new ArrayList<>() : takeClients();
            return new Batch(clients, takeEvents(clients));
        }
    }

    /** Posts again all facts that a host keeps in memory, since the Python host that starts now does not know them. */
    public synchronized void replay() {
        news.addAll(facts.keySet());
        eventArrived();
    }

    public int depth() {
        return Math.max(0, depth.get());
    }

    public long overflow() {
        return overflow.sum();
    }

    private List<Batch.Lookup> takeClients() {
        if (System.nanoTime() - recentSince >= SECOND) {
            before = recent;
            recent = ConcurrentHashMap.newKeySet();
            recentSince = System.nanoTime();
        }
        List<Batch.Lookup> clients = new ArrayList<>();
        Batch.Lookup post;
        while (clients.size() < BATCH && (post = posts.poll()) != null) {
            depth.decrementAndGet();
            clients.add(post);
        }
        return clients;
    }

    /** Takes the events, and as many clients to ask again as the batch has room for. */
    private List<Batch.Event> takeEvents(List<Batch.Lookup> clients) {
        if (!eventsWait) return List.of();
        List<Batch.Event> taken = new ArrayList<>();
        for (var first = news.iterator(); taken.size() < MOST_FACTS && first.hasNext(); first.remove()) {
            List<String> what = first.next();
            Stream<String> value = facts.getOrDefault(what, List.of("")).stream();
            taken.add(new Batch.Event(what.get(0), Stream.concat(what.stream().skip(1), value).toList()));
        }
        for (var first = again.iterator(); news.isEmpty() && clients.size() < BATCH && first.hasNext(); first.remove()) {
            clients.add(first.next());
        }
        taken.addAll(events);
        events.clear();
        eventsWait = !news.isEmpty() || !again.isEmpty();
        return taken;
    }

    private void eventArrived() {
        eventsWait = true;
        wake();
    }

    private void wake() {
        Thread thread = waiting;
        if (thread != null) LockSupport.unpark(thread);
    }
}
