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
 * What the host has to do next: the only way from Kafka's threads to Python, for unknown clients up to a bound, and for
 * all that Kafka tells.
 *
 * <p>Request threads post the clients that the quota table does not know, without a lock and up to a bound. Beyond
 * the bound a post is dropped and counted, and the client's next request posts it again. All else (client quotas, the
 * cluster, new properties) is kept until the host takes it; there is only as much as brokers, quotas and changes.
 */
public final class Inbox {
    /** How many clients the host takes at once (few enough to answer other events soon), and how many may wait. */
    static final int BATCH = 2_000, MOST = 65_536;
    /** How many facts it takes at once: an answer to a process of its own has a bound, and there may be a million quotas. */
    static final int MOST_FACTS = 10_000;
    private static final long SECOND = 1_000_000_000L;

    /** What the host takes at once. Python answers by position (QuotaTable.publish): no name has to survive the way back. */
    public record Batch(List<Lookup> clients, List<Event> events) {
        public static final Batch EMPTY = new Batch(List.of(), List.of());

        /**
         * Java's sets arrange what has an order as a tree where many have one hash: a client-id may be chosen to collide.
         *
         * @param postedAt when a request first missed the client (System.nanoTime), or 0 if the host asks again by itself
         */
        public record Lookup(String principal, String clientId, long postedAt) implements Comparable<Lookup> {
            private static final Comparator<Lookup> ORDER = Comparator.comparing(Lookup::clientId)
                    .thenComparing(Lookup::principal).thenComparingLong(Lookup::postedAt);

            /** Whether a request waits for the answer. */
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
    /** The size of posts, or one less for each that is added just now; the queue's own size() walks through all of it. */
    private final AtomicInteger depth = new AtomicInteger();
    private final LongAdder overflow = new LongAdder();
    /** The clients posted in this second of takes and the one before, at 0, so that a burst of one new client is one post. */
    private volatile Set<Batch.Lookup> recent = ConcurrentHashMap.newKeySet(), before = Set.of();
    private long recentSince = System.nanoTime();

    /**
     * Whom the host asked for again by itself, as many as the table has places at most; and up to MOST whom a host has
     * taken that ended before it answered. Under the lock.
     */
    private final Set<Batch.Lookup> again = new LinkedHashSet<>();
    private final List<Batch.Event> events = new ArrayList<>();
    /** What a host keeps in its memory: client quotas by entity, and the cluster; each as Kafka told it last. */
    private final Map<List<String>, List<String>> facts = new LinkedHashMap<>();
    /** The facts that the host has not taken yet. */
    private final Set<List<String>> news = new LinkedHashSet<>();

    /** Whether there is news, an event, or somebody to ask for again: what is above under the lock, for who waits without it. */
    private volatile boolean eventsWait;
    /** The host's thread while it waits in take(), else null. */
    private volatile Thread waiting;

    /**
     * On a request thread: posts a client that the table does not know, as a rule once, and again if the host has not
     * answered for one or two seconds.
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
        depth.incrementAndGet(); // last: where the heap is full nothing is added, and nothing must count
        wake();
    }

    // ---- Kafka's metadata threads ----------------------------------------------------------------------------

    /** Posts a client quota that was set, or removed (null): bytes/s, percent or mutations/s by its type. */
    public void clientQuota(ClientQuotaType type, ClientQuotaEntity entity, Double rate) {
        List<String> user = List.of("", "");
        List<String> client = user;
        for (ClientQuotaEntity.ConfigEntity part : entity.configEntities()) {
            // The kind decides, not the name: Kafka names a default "<default>", and a user may be called so, too.
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

    /** Whether Kafka has told of the cluster yet, as it does after it has applied what is stored. */
    public synchronized boolean knowsCluster() {
        return facts.containsKey(List.of("cluster"));
    }

    /** Both callbacks of a combined node tell it: only what differs from before is news. Null: it holds no longer. */
    private synchronized void fact(List<String> what, List<String> value) {
        if (Objects.equals(facts.get(what), value)) return;
        news.add(what); // first: what is a fact and no news nobody would tell the host
        if (value == null) facts.remove(what);
        else facts.put(what, value);
        eventArrived();
    }

    /** Posts an event of another kind: "validate", "reconfigure", which makes an older one void, "question" or "closing". */
    public synchronized void postEvent(String kind, List<?> fields) {
        Batch.Event event = new Batch.Event(kind, fields); // first: where the heap is full the older one stays
        events.removeIf(older -> kind.equals("reconfigure") && older.kind().equals(kind));
        events.add(event);
        eventArrived();
    }

    /** Takes back the event with this ticket, its first field, if the host has not taken it: nobody waits for it now. */
    public synchronized void withdraw(String kind, String ticket) {
        events.removeIf(event -> event.kind().equals(kind) && event.fields().indexOf(ticket) == 0);
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /** Has the host resolve somebody once more who is in the table; after those whom requests wait for. */
    public synchronized void askAgain(Batch.Lookup lookup) {
        if (lookup.posted() && again.size() >= MOST) overflow.increment(); // its next request posts it again
        else again.add(lookup);
        eventArrived();
    }

    /** Waits for something to do, at most timeoutMs, and takes it; the batch is empty if nothing came. */
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
            // Until the host knows all facts it is asked for nobody.
            List<Batch.Lookup> clients = news.size() > MOST_FACTS ? new ArrayList<>() : takeClients();
            return new Batch(clients, takeEvents(clients));
        }
    }

    /** Posts once more all that a host keeps in its memory: the Python host that starts now knows nothing of it. */
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

    /** Takes the events, and as many to ask for again as the batch has room for. */
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
