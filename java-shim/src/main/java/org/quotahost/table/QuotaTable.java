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
 * Quotas by client, remembered for the request threads, which only read: no lock, no allocation on a hit.
 *
 * <p>A client that isn't there gets the newcomers' tags, shared by all such, with a limit of their own, and is
 * posted to the inbox. The table holds at most clients.max. A client is forgotten only when it has been silent
 * for clients.idle, by default as long as Kafka keeps its sensor; so forgetting can't make a client's use
 * forgotten, and a flood of new names fills the table once and then shares the newcomers' limit.
 */
public final class QuotaTable {
    /** Kafka drops a sensor after an hour without use (ClientQuotaManager). */
    static final long SENSOR_LIFE_SECONDS = 3_600;
    /** How finely idleness is measured. */
    public static final int TICKS_PER_IDLE = 8;
    /** How finely the time is known at which a client was last seen: the clock that request threads read stands still between. */
    public static final long BEAT_MS = 200;

    private final Counters counters = new Counters();
    private final Inbox inbox;
    private final Scopes scopes = new Scopes();
    private final FactorInForce factorInForce = new FactorInForce(scopes, this);
    private volatile ClientMap clients = new ClientMap(0);
    /** In beats since the start. */
    private volatile int now;
    private int tickedAt;
    private volatile int size;
    private volatile int clientsMax = 50_000;
    private volatile long idleSeconds = SENSOR_LIFE_SECONDS;

    /** What has happened in the table since it was made. */
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

    /** The tags of a client for a quota type: ClientQuotaCallback.quotaMetricTags. */
    public Map<String, String> tags(int type, String principal, String clientId) {
        Client client = clients.get(principal, clientId);
        if (client == null) return missed(principal, clientId);
        int beat = now;
        if (client.seen[type] != beat) client.seen[type] = beat;
        return client.tags[type];
    }

    private Tags missed(String principal, String clientId) {
        counters.misses.increment();
        if (size >= clientsMax) counters.unadmitted.increment();
        else inbox.ask(principal, clientId);
        return scopes.newcomers;
    }

    /** The limit that goes with tags, null for unlimited: ClientQuotaCallback.quotaLimit. */
    public Double limit(int type, Map<String, String> tags) {
        Tags known = tags instanceof Tags t ? t : scopes.find(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
        return (known == null ? scopes.newcomers : known).limit(type);
    }

    /** Grows when limits that Kafka may hold have changed: ClientQuotaCallback.quotaResetRequired. */
    public int generation(int type) {
        return scopes.generation(type);
    }

    public Map<String, String> newcomers() {
        return scopes.newcomers;
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /** Settings, which may change while the broker runs; the newcomers' rates by type, NaN for unlimited. */
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

    /** How quickly the factor may fall: Kafka's window and the longest mute that a step may cause. */
    public void configureRamp(long windowMs, long maxMuteMs) {
        factorInForce.configure(windowMs, maxMuteMs);
    }

    /** Who passes the fence in every state: principals, and client-ids where nobody authenticates (Fence). */
    public void exempt(String[] principals, String[] clientIds, boolean brokersAnonymous) {
        Fence.exempt(principals, clientIds, brokersAnonymous);
    }

    /**
     * Takes the host's answers for a batch (Answers says how they are laid out).
     * Answers how many clients differ from what was known; another source alone is no difference.
     */
    public synchronized int publish(Batch batch, int[] codes, double[] rates, String[] groups, int[] sources,
            String[] suppliers) {
        var answers = new Answers(codes, rates, groups, sources, suppliers);
        boolean[] reset = new boolean[Tags.TYPES];
        int changed = 0;
        for (int i = 0; i < batch.clients().size(); i++) {
            Batch.Asked asked = batch.clients().get(i);
            if (put(asked, answers.of(i), reset)) changed++;
            if (asked.since() != 0) counters.resolveTime.record(System.nanoTime() - asked.since());
        }
        counters.changes.add(changed);
        scopes.bump(reset);
        return changed;
    }

    /** Whether a fence stands in this JVM that holds a PAUSE. */
    public boolean fenceInstalled() {
        return Fence.installed();
    }

    /** The factor that the host found, and why; it holds while the lease does. */
    public void factor(double value, String why) {
        factorInForce.found(value, why);
    }

    /** The clients known that match, to be asked for again; null matches all. */
    public Batch clients(String principal, String clientId) {
        return known(c -> (principal == null || c.principal.equals(principal))
                && (clientId == null || c.clientId.equals(clientId)));
    }

    /** The clients whose supplier failed. */
    public Batch unresolved() {
        return known(c -> c.unresolved);
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

    /** Moves the clock by which idleness is measured to so many ms after the start. */
    public synchronized void beat(long ms) {
        int next = (int) (ms / BEAT_MS);
        if (next - now > 0) now = next;
    }

    /** An eighth of clients.idle has passed: forgets who has been silent for longer than all of it. */
    public synchronized void tick() {
        int eighth = (int) Math.max(1, idleSeconds * 1_000 / TICKS_PER_IDLE / BEAT_MS);
        if (now - tickedAt < eighth) now = tickedAt + eighth;
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

    /** A line for each quota type: what the table holds for a client (Description says how it is laid out). */
    public String[] describe(String principal, String clientId) {
        return descriptions(principal, clientId).stream().map(Description::line).toArray(String[]::new);
    }

    private synchronized List<Description> descriptions(String principal, String clientId) {
        Client client = clients.get(principal, clientId);
        List<Description> all = new ArrayList<>();
        for (ClientQuotaType type : ClientQuotaType.values()) {
            Tags tags = client == null ? scopes.newcomers : client.tags[type.ordinal()];
            all.add(Description.of(type, client, tags, tags == scopes.newcomers, scopes.rule()));
        }
        return all;
    }

    /** What the clients use that Kafka measures one by one, the busiest first (Usage says how a line is laid out). */
    public String[] usage(int most) {
        return Reply.lines(() -> Usage.lines(used(), most));
    }

    /** Who asked lately; what Kafka measures for them is asked without the lock. */
    private synchronized List<Usage> used() {
        List<Usage> used = new ArrayList<>();
        int at = now;
        clients.forEach(client -> {
            for (ClientQuotaType type : Usage.TYPES) {
                long idleMs = (at - client.seen[type.ordinal()]) * BEAT_MS;
                if (idleMs <= Usage.LATELY_MS) used.add(Usage.of(client, type, idleMs));
            }
        });
        return used;
    }

    // ---- writing, under the lock -----------------------------------------------------------------------------

    private boolean put(Batch.Asked asked, Answers.Answer answer, boolean[] reset) {
        Client old = clients.get(asked.principal(), asked.clientId());
        if (old == null && size >= clientsMax) return false;
        Client client = old != null ? old : new Client(asked.principal(), asked.clientId(), now);
        Tags[] next = new Tags[Tags.TYPES];
        String[] sources = new String[Tags.TYPES];
        boolean unresolved = false;
        boolean changed = old == null;
        for (int type = 0; type < Tags.TYPES; type++) {
            Tags from = old == null ? null : old.tags[type];
            boolean failed = answer.code(type) == Scopes.NEWCOMER;
            unresolved |= failed;
            next[type] = failed && from != null ? from : scopes.of(answer.code(type), client, answer.groups());
            sources[type] = failed && from != null && from != scopes.newcomers ? old.sources[type] : answer.source(type);
            changed |= place(from, next[type], type, answer, reset);
        }
        client.unresolved = unresolved;
        client.tags = next;
        client.sources = sources;
        if (old == null && !admit(client)) return false;
        return changed;
    }

    private boolean place(Tags from, Tags to, int type, Answers.Answer answer, boolean[] reset) {
        int code = answer.code(type);
        boolean fresh = !to.used(type);
        boolean differs = code != Scopes.NEWCOMER
                && to.set(type, answer.rate(type), code == Scopes.EXEMPT, scopes.rule());
        // Fresh tags are unknown to Kafka, unless it may still have a sensor of that name from before.
        reset[type] |= fresh ? idleSeconds < SENSOR_LIFE_SECONDS : differs;
        if (from == to) return differs;
        to.hold(type);
        if (from != null) reset[type] |= from.leave(type, now);
        return true;
    }

    private boolean admit(Client client) {
        if (!clients.add(client)) {
            letGo(client, now);
            return false;
        }
        size = size + 1;
        return true;
    }

    private void forget(Client client, int at) {
        clients.remove(client);
        letGo(client, at);
        size = size - 1;
        counters.evicted.increment();
    }

    private static void letGo(Client client, int at) {
        for (int type = 0; type < Tags.TYPES; type++) client.tags[type].drop(type, at);
    }

    private Batch known(Predicate<Client> wanted) {
        List<Batch.Asked> asked = new ArrayList<>();
        clients.forEach(c -> {
            if (wanted.test(c)) asked.add(new Batch.Asked(c.principal, c.clientId, 0));
        });
        return new Batch(asked, List.of());
    }
}
