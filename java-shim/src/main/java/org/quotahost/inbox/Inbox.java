package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * What the host has to do next: the only way from Kafka's threads to Python.
 *
 * <p>Request threads post the clients that the quota table does not know, without a lock and up to a bound. Beyond
 * the bound a post is dropped and counted, and the client's next request posts it again. All other events (client
 * quotas, the cluster, new properties) are kept until the host takes them; there are only as many as brokers, quotas
 * and changes. The host takes both as a Batch.
 */
public final class Inbox {
    /** How many clients the host takes at once: enough to be quick, few enough to answer other events soon. */
    static final int BATCH = 2_000;
    private static final int RECENT = 1 << 16;
    /**
     * Slots a client may have among the recent: with one, a quarter of 20,000 clients would share theirs and be
     * posted anew.
     */
    private static final int WAYS = 4;
    private static final long POST_AGAIN_NANOS = 1_000_000_000L;

    private final Queue<Post> posts = new ConcurrentLinkedQueue<>();
    /** The size of posts; the queue's own size() walks through all of it. */
    private final AtomicInteger depth = new AtomicInteger();
    /** Clients posted lately, by hash, so that a burst of requests of one new client is one post. */
    private final AtomicReferenceArray<Post> recent = new AtomicReferenceArray<>(RECENT);
    private final LongAdder overflow = new LongAdder();
    /** Whom the host asked for again by itself; there are only as many as the table has places. Under the lock. */
    private final Set<Batch.Lookup> again = new LinkedHashSet<>();
    private final List<Batch.Event> events = new ArrayList<>();
    private final ClientQuotas clientQuotas = new ClientQuotas();
    private Batch.Event cluster;
    private volatile int max = 65_536;
    /** Whether there are events, or somebody to ask for again. */
    private volatile boolean eventsWait;
    /** The host's thread while it waits in take(), else null. */
    private volatile Thread waiting;

    /** A client that a request thread did not find in the table. */
    private static final class Post {
        final String principal;
        final String clientId;
        final long postedAt;

        Post(String principal, String clientId, long postedAt) {
            this.principal = principal;
            this.clientId = clientId;
            this.postedAt = postedAt;
        }

        boolean isOf(String otherPrincipal, String otherClientId) {
            return clientId.equals(otherClientId) && principal.equals(otherPrincipal);
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /**
     * Posts a client that the table does not know: as a rule once, and again if the host has not answered for a
     * second.
     */
    public void postClient(String principal, String clientId) {
        // Names that are counted up have hashes in a row, which would share their few slots; the product spreads them.
        int hash = (31 * principal.hashCode() + clientId.hashCode()) * 0x9E3779B9 >>> 12;
        long now = System.nanoTime();
        int slot = hash;
        for (int i = 0; i < WAYS; i++) {
            Post earlier = recent.get(hash + i & RECENT - 1);
            boolean stillRecent = earlier != null && now - earlier.postedAt < POST_AGAIN_NANOS;
            if (!stillRecent) slot = hash + i;
            else if (earlier.isOf(principal, clientId)) return;
        }
        if (depth.get() >= max) {
            overflow.increment();
            return;
        }
        Post post = new Post(principal, clientId, now);
        recent.set(slot & RECENT - 1, post);
        depth.incrementAndGet();
        posts.add(post);
        wake();
    }

    // ---- Kafka's metadata threads ----------------------------------------------------------------------------

    /**
     * Posts a client quota that was set, or removed (null). If both callbacks of a combined node post it, it is one
     * event.
     */
    public synchronized void clientQuota(ClientQuotas.Key key, Double rate) {
        clientQuotas.put(key, rate);
        eventArrived();
    }

    /** Posts the cluster's id and the ids of its brokers, unless they are those that were posted last. */
    public synchronized void cluster(String clusterId, List<String> brokers) {
        List<String> fields = new ArrayList<>(brokers);
        fields.add(0, clusterId);
        Batch.Event event = new Batch.Event("cluster", fields);
        if (event.equals(cluster)) return;
        cluster = event;
        events.add(event);
        eventArrived();
    }

    /** Posts an event of another kind: "validate", "reconfigure", "question" or "closing". */
    public synchronized void postEvent(String kind, List<String> fields) {
        events.add(new Batch.Event(kind, fields));
        eventArrived();
    }

    /** Takes back the event with this ticket, its first field, if the host has not taken it: nobody waits for it now. */
    public synchronized void withdraw(String kind, String ticket) {
        events.removeIf(event -> event.kind().equals(kind) && event.fields().indexOf(ticket) == 0);
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /** Has the host resolve somebody once more who is in the table; after those whom requests wait for. */
    public synchronized void askAgain(Batch.Lookup lookup) {
        again.add(lookup);
        eventArrived();
    }

    /** Waits for something to do, at most timeoutMs, and takes it; the batch is empty if nothing came. */
    public Batch take(long timeoutMs) {
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        waiting = Thread.currentThread();
        while (depth.get() == 0 && !eventsWait) {
            long left = deadline - System.nanoTime();
            if (left <= 0) break;
            LockSupport.parkNanos(this, left);
        }
        waiting = null;
        List<Batch.Lookup> clients = takeClients();
        return new Batch(clients, takeEvents(clients));
    }

    /** Posts once more all that a host keeps in its memory: the Python host that starts now knows nothing of it. */
    public synchronized void replay() {
        clientQuotas.replay();
        events.removeIf(event -> event.kind().equals("cluster"));
        if (cluster != null) events.add(cluster);
        eventArrived();
    }

    /** @param bound how many posted clients may wait (inbox.max) */
    public void max(int bound) {
        max = bound;
    }

    /** How many posted clients wait. */
    public int depth() {
        return depth.get();
    }

    /** How many posts were dropped since the start, because too many clients waited. */
    public long overflow() {
        return overflow.sum();
    }

    private List<Batch.Lookup> takeClients() {
        List<Batch.Lookup> clients = new ArrayList<>(Math.min(depth.get(), BATCH));
        Post post;
        while (clients.size() < BATCH && (post = posts.poll()) != null) {
            depth.decrementAndGet();
            clients.add(new Batch.Lookup(post.principal, post.clientId, post.postedAt));
        }
        return clients;
    }

    /** Takes the events, and as many to ask for again as the batch has room for. */
    private synchronized List<Batch.Event> takeEvents(List<Batch.Lookup> clients) {
        if (!eventsWait) return List.of();
        for (var first = again.iterator(); clients.size() < BATCH && first.hasNext(); first.remove()) clients.add(first.next());
        eventsWait = !again.isEmpty();
        List<Batch.Event> taken = new ArrayList<>(clientQuotas.takeChanges());
        taken.addAll(events);
        events.clear();
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
