package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * What the host has to do next. Request threads post clients that the table doesn't know, without a lock and up to
 * a bound; beyond it the post is dropped and counted, and the client's next request posts it again. Everything
 * else (client quotas, the cluster, reconfiguration) is kept until taken, and is bounded by its own nature.
 */
public final class Inbox {
    /** How many clients the host takes at once: enough to be quick, few enough to stay responsive. */
    static final int BATCH = 2_000;
    private static final int RECENT = 1 << 16;
    /** Places a client may have among the recent: with one, a quarter of 20,000 would share theirs and be posted anew. */
    private static final int WAYS = 4;
    private static final long POST_AGAIN_NANOS = 1_000_000_000L;

    private final Queue<Miss> misses = new ConcurrentLinkedQueue<>();
    private final AtomicInteger depth = new AtomicInteger();
    private final AtomicReferenceArray<Miss> recent = new AtomicReferenceArray<>(RECENT);
    private final LongAdder overflow = new LongAdder();
    private final List<Batch.Event> events = new ArrayList<>();
    private final ClientQuotas clientQuotas = new ClientQuotas();
    private Batch.Event cluster;
    private volatile int max = 65_536;
    private volatile boolean pending;
    private volatile Thread waiting;

    private static final class Miss {
        final String principal;
        final String clientId;
        final long since;

        Miss(String principal, String clientId, long since) {
            this.principal = principal;
            this.clientId = clientId;
            this.since = since;
        }

        boolean of(String otherPrincipal, String otherClientId) {
            return clientId.equals(otherClientId) && principal.equals(otherPrincipal);
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Posts a client that the table doesn't know; as a rule once, and again if a second brings no answer. */
    public void ask(String principal, String clientId) {
        int at = 31 * principal.hashCode() + clientId.hashCode();
        long now = System.nanoTime();
        int place = at;
        for (int i = 0; i < WAYS; i++) {
            Miss other = recent.get(at + i & RECENT - 1);
            boolean lately = other != null && now - other.since < POST_AGAIN_NANOS;
            if (!lately) place = at + i;
            else if (other.of(principal, clientId)) return;
        }
        if (depth.get() >= max) {
            overflow.increment();
            return;
        }
        Miss miss = new Miss(principal, clientId, now);
        recent.set(place & RECENT - 1, miss);
        depth.incrementAndGet();
        misses.add(miss);
        wake();
    }

    // ---- Kafka's metadata threads ----------------------------------------------------------------------------

    /** A client quota was set, or removed (null). The same from both callbacks of a combined node is one. */
    public synchronized void clientQuota(ClientQuotas.Key key, Double rate) {
        clientQuotas.put(key, rate);
        signal();
    }

    public synchronized void cluster(String clusterId, List<String> brokers) {
        List<String> fields = new ArrayList<>(brokers);
        fields.add(0, clusterId);
        Batch.Event event = new Batch.Event("cluster", fields);
        if (event.equals(cluster)) return;
        cluster = event;
        events.add(event);
        signal();
    }

    public synchronized void post(String kind, List<String> fields) {
        events.add(new Batch.Event(kind, fields));
        signal();
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /** Waits for something to do, at most so long, and takes it; the batch is empty if nothing came. */
    public Batch take(long timeoutMs) {
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        waiting = Thread.currentThread();
        while (depth.get() == 0 && !pending) {
            long left = deadline - System.nanoTime();
            if (left <= 0) break;
            LockSupport.parkNanos(this, left);
        }
        waiting = null;
        return new Batch(takeMisses(), takeEvents());
    }

    /** A new host has to be told again what the last one knew. */
    public synchronized void replay() {
        clientQuotas.replay();
        events.removeIf(e -> e.kind().equals("cluster"));
        if (cluster != null) events.add(cluster);
        signal();
    }

    /** Forgets everything: the last callback was closed. */
    synchronized void clear() {
        while (!takeMisses().isEmpty()) continue;
        takeEvents();
        clientQuotas.clear();
        cluster = null;
    }

    public void max(int bound) {
        max = bound;
    }

    public int depth() {
        return depth.get();
    }

    public long overflow() {
        return overflow.sum();
    }

    private List<Batch.Asked> takeMisses() {
        List<Batch.Asked> asked = new ArrayList<>(Math.min(depth.get(), BATCH));
        Miss miss;
        while (asked.size() < BATCH && (miss = misses.poll()) != null) {
            depth.decrementAndGet();
            asked.add(new Batch.Asked(miss.principal, miss.clientId, miss.since));
        }
        return asked;
    }

    private synchronized List<Batch.Event> takeEvents() {
        if (!pending) return List.of();
        pending = false;
        List<Batch.Event> taken = new ArrayList<>(clientQuotas.changed());
        taken.addAll(events);
        events.clear();
        return taken;
    }

    private void signal() {
        pending = true;
        wake();
    }

    private void wake() {
        Thread thread = waiting;
        if (thread != null) LockSupport.unpark(thread);
    }
}
