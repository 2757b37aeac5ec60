package org.quotahost.table;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Predicate;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.util.Histogram;
import org.quotahost.util.Reply;

/**
 * The quota table: the host's answers by client, for the request threads, which only read: no lock, no allocation on
 * a hit.
 *
 * <p>A client that is not in the table gets the newcomers' tags, which all such clients share, with a limit of their
 * own, and is posted to the inbox. The host takes it from there and publishes an answer.
 *
 * <p>The table has room for clients.max clients. It forgets a client only when that has been silent for clients.idle,
 * by default as long as Kafka keeps its sensor. So no client gets rid of what it has used by being forgotten, and a
 * flood of new names fills the table once and then shares the newcomers' limit.
 */
public final class QuotaTable {
    /** Kafka drops a sensor that was not used for an hour (ClientQuotaManager). */
    static final long SENSOR_LIFE_SECONDS = 3_600;
    /** Silent clients are looked for this many times in clients.idle. */
    public static final int TICKS_PER_IDLE = 8;
    /** The table's clock, which request threads read instead of the system's, goes on in beats of so many ms. */
    public static final long BEAT_MS = 200;

    private final Counters counters = new Counters();
    private final Inbox inbox;
    private final Scopes scopes = new Scopes();
    private final FactorInForce factorInForce = new FactorInForce(scopes, this);
    private volatile ClientMap clients = new ClientMap(0);
    /** The table's clock, in beats since the start. */
    private volatile int now;
    private int tickedAt;
    /** How many clients there are. */
    private volatile int size;
    private volatile int clientsMax = 50_000;
    private volatile long idleSeconds = SENSOR_LIFE_SECONDS;

    /** What has happened in the table since it was made; the gauges of the MBean QuotaTable. */
    public static final class Counters {
        public final LongAdder misses = new LongAdder();
        public final LongAdder unadmitted = new LongAdder();
        public final LongAdder changes = new LongAdder();
        public final LongAdder evicted = new LongAdder();
        public final Histogram resolveTime = new Histogram();
    }

    public QuotaTable(Inbox inbox) {
        this.inbox = inbox;
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** The tags of a client for a quota type (ClientQuotaCallback.quotaMetricTags). */
    public Map<String, String> tags(int type, String principal, String clientId) {
        Client client = clients.get(principal, clientId);
        if (client == null) return newcomer(principal, clientId);
        int beat = now;
        // Not on each request: a write moves the cache line away from the other request threads.
        if (client.seen[type] != beat) client.seen[type] = beat;
        return client.tags[type];
    }

    private Tags newcomer(String principal, String clientId) {
        counters.misses.increment();
        if (size >= clientsMax) counters.unadmitted.increment();
        else inbox.postClient(principal, clientId);
        return scopes.newcomers;
    }

    /**
     * The limit of a scope, null for unlimited (ClientQuotaCallback.quotaLimit). Kafka may hand the tags back as a
     * copy.
     */
    public Double limit(int type, Map<String, String> tags) {
        Tags known = tags instanceof Tags t ? t : scopes.find(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
        return (known == null ? scopes.newcomers : known).limit(type);
    }

    /**
     * Grows whenever limits of a type have changed that Kafka may have in its sensors
     * (ClientQuotaCallback.quotaResetRequired).
     */
    public int generation(int type) {
        return scopes.generation(type);
    }

    /** The tags of clients that the table does not know. */
    public Map<String, String> newcomers() {
        return scopes.newcomers;
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /**
     * Takes the settings over; all but max may change while the broker runs.
     *
     * @param max for how many clients there is room (clients.max)
     * @param idle after how many seconds of silence a client is forgotten (clients.idle)
     * @param floorBytes bytes/s below which no factor takes a limit (floor.bytes)
     * @param factored names of the quota types that the factor multiplies
     * @param shadow no limit is enforced, and the fence turns no request back (mode=shadow)
     * @param newcomerRates the newcomers' rates by quota type, NaN for unlimited
     */
    public synchronized void configure(int max, long idle, double floorBytes, String[] factored, boolean shadow,
            double[] newcomerRates) {
        if (size == 0) clients = new ClientMap(max); // clients.max is not live
        clientsMax = max;
        idleSeconds = idle;
        var types = EnumSet.noneOf(ClientQuotaType.class);
        for (String name : factored) types.add(ClientQuotaType.valueOf(name));
        boolean[] reset = new boolean[Tags.TYPES];
        for (int type = 0; type < Tags.TYPES; type++) {
            reset[type] = scopes.newcomers.set(type, newcomerRates[type], false, scopes.rule());
        }
        scopes.bump(reset);
        Fence.shadow(shadow);
        scopes.apply(factorInForce.rule(floorBytes, types, shadow));
    }

    /** Sets how quickly limits may fall: by Kafka's window and the longest mute that a step may cause, both in ms. */
    public void configureRamp(long windowMs, long maxMuteMs) {
        factorInForce.configure(windowMs, maxMuteMs);
    }

    /** Sets the clients that the fence never turns back (Fence.exempt). */
    public void exempt(String[] principals, String[] clientIds, String internalClientIds) {
        Fence.exempt(principals, clientIds, internalClientIds);
    }

    /** Sets the topics that the fence never protects (Fence.spare). */
    public void spare(String[] topics) {
        Fence.spare(topics);
    }

    /**
     * Takes over the host's answers for a batch, in the layout of Answers.
     *
     * @return how many clients have other tags or limits than before; another supplier alone is no difference
     */
    public synchronized int publish(Batch batch, int[] codes, double[] rates, String[] groups, int[] supplierIndexes,
            String[] suppliers) {
        var answers = new Answers(codes, rates, groups, supplierIndexes, suppliers);
        boolean[] reset = new boolean[Tags.TYPES];
        int changed = 0;
        for (int i = 0; i < batch.clients().size(); i++) {
            Batch.Lookup lookup = batch.clients().get(i);
            if (store(lookup, answers.of(i), reset)) changed++;
            if (lookup.postedAt() != 0) counters.resolveTime.record(System.nanoTime() - lookup.postedAt());
        }
        counters.changes.add(changed);
        scopes.bump(reset);
        return changed;
    }

    /** Whether there is a fence in this JVM, which turns requests back in a PAUSE. */
    public boolean fenceInstalled() {
        return Fence.installed();
    }

    /** Sets the host's factor (0..1) and its cause; it is in force until the lease runs out. */
    public void factor(double value, String cause) {
        factorInForce.hostFactor(value, cause);
    }

    /** The clients in the table with these names, for the host to resolve again; null matches all. */
    public Batch clients(String principal, String clientId) {
        return select(c -> (principal == null || c.principal.equals(principal))
                && (clientId == null || c.clientId.equals(clientId)));
    }

    /** The clients for which a supplier failed, for the host to resolve again. */
    public Batch unresolved() {
        return select(c -> c.unresolved);
    }

    // ---- clock and readers -------------------------------------------------------------------------------------

    public Counters counters() {
        return counters;
    }

    public FactorInForce factorInForce() {
        return factorInForce;
    }

    public LimitRule rule() {
        return scopes.rule();
    }

    /** Moves the table's clock to so many ms after the start. Watch calls it every BEAT_MS. */
    public synchronized void beat(long ms) {
        int next = (int) (ms / BEAT_MS);
        if (next - now > 0) now = next;
    }

    /** Forgets the clients that have been silent for clients.idle. Watch calls it after each eighth of that time. */
    public synchronized void tick() {
        int eighth = (int) Math.max(1, idleSeconds * 1_000 / TICKS_PER_IDLE / BEAT_MS);
        if (now - tickedAt < eighth) now = tickedAt + eighth; // the clock must not fall behind the ticks
        int at = tickedAt = now;
        clients.forEach(client -> {
            if (client.idle(at) > TICKS_PER_IDLE * eighth) forget(client, at);
        });
        scopes.sweep(at - TICKS_PER_IDLE * eighth);
    }

    public long idleSeconds() {
        return idleSeconds;
    }

    public int size() {
        return size;
    }

    public int clientsMax() {
        return clientsMax;
    }

    /** The state of one client, as a line for each quota type (Description). */
    public String[] describe(String principal, String clientId) {
        return describeTypes(principal, clientId).stream().map(Description::line).toArray(String[]::new);
    }

    private synchronized List<Description> describeTypes(String principal, String clientId) {
        Client client = clients.get(principal, clientId);
        List<Description> all = new ArrayList<>();
        for (ClientQuotaType type : ClientQuotaType.values()) {
            Tags tags = client == null ? scopes.newcomers : client.tags[type.ordinal()];
            all.add(Description.of(type, client, tags, tags == scopes.newcomers, scopes.rule()));
        }
        return all;
    }

    /** The usage of clients that Kafka measures one by one, the busiest first, as lines (Usage) of a Reply. */
    public String[] usage(int most) {
        return Reply.lines(() -> Usage.lines(recentUsage(), most));
    }

    /** The clients that were seen lately. Kafka's measurements of them are read afterwards, without the lock. */
    private synchronized List<Usage> recentUsage() {
        List<Usage> used = new ArrayList<>();
        int at = now;
        clients.forEach(client -> {
            for (ClientQuotaType type : Usage.TYPES) {
                long idleMs = (at - client.seen[type.ordinal()]) * BEAT_MS;
                if (idleMs <= Usage.RECENT_MS) used.add(Usage.of(client, type, idleMs));
            }
        });
        return used;
    }

    // ---- writing, under the lock -----------------------------------------------------------------------------

    /**
     * Stores one client's answer; sets reset for the types that Kafka has to read again. Answers whether anything
     * changed.
     */
    private boolean store(Batch.Lookup lookup, Answers.Answer answer, boolean[] reset) {
        Client old = clients.get(lookup.principal(), lookup.clientId());
        if (old == null && size >= clientsMax) return false;
        Client client = old != null ? old : new Client(lookup.principal(), lookup.clientId(), now);
        Tags[] next = new Tags[Tags.TYPES];
        String[] suppliers = new String[Tags.TYPES];
        boolean unresolved = false;
        boolean changed = old == null;
        for (int type = 0; type < Tags.TYPES; type++) {
            Tags from = old == null ? null : old.tags[type];
            boolean failed = answer.code(type) == Scopes.NEWCOMER;
            unresolved |= failed;
            // After a failure a client keeps the quota that it has; a client that has none is a newcomer.
            next[type] = failed && from != null ? from : scopes.of(answer.code(type), client, answer.groups());
            suppliers[type] = failed && from != null && from != scopes.newcomers ? old.suppliers[type]
                    : answer.supplier(type);
            changed |= assign(from, next[type], type, answer, reset);
        }
        client.unresolved = unresolved;
        client.tags = next;
        client.suppliers = suppliers;
        if (old == null && !admit(client)) return false;
        return changed;
    }

    /** Gives a client its tags for one type, and the tags their rate. Answers whether tags or limit have changed. */
    private boolean assign(Tags from, Tags to, int type, Answers.Answer answer, boolean[] reset) {
        int code = answer.code(type);
        boolean unused = !to.used(type);
        boolean differs = code != Scopes.NEWCOMER
                && to.set(type, answer.rate(type), code == Scopes.EXEMPT, scopes.rule());
        // Kafka has no sensor for tags that no client has had, unless the table forgets sooner than Kafka does.
        reset[type] |= unused ? idleSeconds < SENSOR_LIFE_SECONDS : differs;
        if (from == to) return differs;
        to.join(type);
        if (from != null) reset[type] |= from.leave(type, now);
        return true;
    }

    private boolean admit(Client client) {
        if (!clients.add(client)) {
            dropTags(client, now);
            return false;
        }
        size = size + 1;
        return true;
    }

    private void forget(Client client, int at) {
        clients.remove(client);
        dropTags(client, at);
        size = size - 1;
        counters.evicted.increment();
    }

    private static void dropTags(Client client, int at) {
        for (int type = 0; type < Tags.TYPES; type++) client.tags[type].drop(type, at);
    }

    private Batch select(Predicate<Client> wanted) {
        List<Batch.Lookup> lookups = new ArrayList<>();
        clients.forEach(c -> {
            if (wanted.test(c)) lookups.add(new Batch.Lookup(c.principal, c.clientId, 0));
        });
        return new Batch(lookups, List.of());
    }
}
