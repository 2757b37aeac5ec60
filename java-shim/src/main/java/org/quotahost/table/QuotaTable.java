package org.quotahost.table;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import javax.management.openmbean.TabularData;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.util.Histogram;
import org.quotahost.util.Reply;

/**
 * The quota table: the host's answers, for the request threads, which only read: no lock, no allocation on a hit.
 *
 * <p>A look-up begins with the principal, since a client-id is only a claim. What holds for all client-ids of a
 * principal is kept with it, so such a principal is known after its first request, whatever client-id comes next.
 * Clients are kept by client-id only where their quota depends on it. A principal that is not in the table gets the
 * newcomers' tags, an unknown client-id of a known principal gets tags that it shares with this principal's others;
 * both are posted to the inbox. The host takes them from there and publishes an answer (Publication).
 *
 * <p>The table has room for clients.max principals and clients (Remembered). It forgets one only when it has been
 * silent for clients.idle, by default as long as Kafka keeps its sensor. So no client gets rid of what it has used by
 * being forgotten, and a flood of new names fills the table once and then shares its principal's newcomers' limit.
 */
public final class QuotaTable {
    /** Kafka drops a sensor that was not used for an hour (ClientQuotaManager). */
    static final long SENSOR_LIFE_SECONDS = 3_600;
    /** Silent clients are looked for this many times in clients.idle. */
    public static final int TICKS_PER_IDLE = 8;
    /** The table's clock, which request threads read instead of the system's, goes on in beats of so many ms. */
    public static final long BEAT_MS = 200;

    /** The factor's name in the property shadow. */
    static final String FACTOR = "factor";

    /** The quota types that the table knows are those whose ClientQuotaType.ordinal() is below this. */
    public static final int TYPES = Tags.TYPES;

    private final Counters counters = new Counters();
    private final Scopes scopes = new Scopes();
    private final Remembered remembered = new Remembered();
    private final LookUp lookUp;
    private final Slowing slowing;
    private final FactorInForce factorInForce;
    private final Shadows shadows;
    private final ClientUses clientUses;
    private final ClientTable clientTable;
    private int tickedAt;
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
        this(inbox, () -> TimeUnit.NANOSECONDS.toMillis(System.nanoTime()));
    }

    /** @param clock monotonic, in ms; limits move by it */
    QuotaTable(Inbox inbox, LongSupplier clock) {
        lookUp = new LookUp(scopes, remembered, inbox, counters);
        slowing = new Slowing(scopes, remembered, lookUp);
        factorInForce = new FactorInForce(scopes, slowing, this, clock);
        shadows = new Shadows(scopes, remembered, lookUp, slowing, factorInForce, this);
        clientUses = new ClientUses(this, scopes, remembered, lookUp, slowing, shadows);
        clientTable = new ClientTable(clientUses::list);
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** The tags of a client for a quota type (ClientQuotaCallback.quotaMetricTags). */
    public Map<String, String> tags(int type, KafkaPrincipal principal, String clientId) {
        return lookUp.tags(type, principal, clientId);
    }

    /**
     * The limit of a scope, null for unlimited (ClientQuotaCallback.quotaLimit). Kafka may hand the tags back as a
     * copy.
     */
    public Double limit(int type, Map<String, String> tags) {
        if (tags instanceof TagPair known) return known.limit(type);
        return scopes.limit(type, tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
    }

    /**
     * Grows whenever limits of a type have changed that Kafka may have in its sensors
     * (ClientQuotaCallback.quotaResetRequired).
     */
    public int generation(int type) {
        return scopes.generation(type);
    }

    /** The tags of principals that the table does not know. */
    public Map<String, String> newcomers() {
        return scopes.newcomers;
    }

    /** The tags of all who have no quota of a type that nobody measures; without a limit. */
    public Map<String, String> unlimited() {
        return scopes.unlimited;
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
     * @param measured names of the quota types for which clients without a quota are measured, too: a factor may act on
     *     what they use, or a plugin reads it. They have no sensors of their own in all other types
     */
    public synchronized void configure(int max, long idle, double floorBytes, String[] factored, boolean shadow,
            double[] newcomerRates, String[] measured) {
        remembered.max(max);
        idleSeconds = idle;
        var types = EnumSet.noneOf(ClientQuotaType.class);
        for (String name : factored) types.add(ClientQuotaType.valueOf(name));
        boolean[] measuredTypes = new boolean[Tags.TYPES];
        for (String name : measured) measuredTypes[ClientQuotaType.valueOf(name).ordinal()] = true;
        scopes.measured(measuredTypes);
        boolean[] reset = new boolean[Tags.TYPES];
        for (int type = 0; type < Tags.TYPES; type++) {
            reset[type] = scopes.newcomers.set(type, newcomerRates[type], false, scopes.rule());
        }
        scopes.bump(reset);
        Fence.shadow(shadow || factorInForce.inShadow());
        Fence.allowance(floorBytes);
        scopes.apply(factorInForce.rule(floorBytes, types, shadow));
    }

    /**
     * Sets how quickly a factor may move limits.
     *
     * @param windows quota.window.num
     * @param windowMs quota.window.size.seconds in ms
     * @param maxMuteMs the longest mute in ms that a step may cause (max.mute)
     */
    public void configureTap(int windows, long windowMs, long maxMuteMs) {
        factorInForce.configure(windows, windowMs, maxMuteMs);
    }

    /**
     * Sets the rules that are not enforced by their names in the property shadow. The factor among them leaves limits and
     * requests alone; suppliers and topics are the business of the host and of TopicQuotas.
     */
    public void shadow(String[] rules) {
        shadows.rules(List.of(rules));
        boolean factor = shadows.rules().contains(FACTOR);
        factorInForce.shadow(factor);
        Fence.shadow(factor || rule().shadow());
    }

    /** Sets the clients that the fence never turns back (Fence.exempt). */
    public void exempt(String[] principals, String[] clientIds, String internalClientIds) {
        Fence.exempt(principals, clientIds, internalClientIds);
    }

    /** Sets whether topics and partitions may be created in a PAUSE (pause.creation). */
    public void allowCreation(boolean on) {
        Creation.allow(on);
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
    public int publish(Batch batch, int[] rows, int[] codes, double[] rates, String[] groups,
            int[] supplierIndexes, String[] suppliers, int[] distinct, ClientIds[] distinctIds) {
        return publish(batch,
                new Answers(rows, codes, rates, groups, supplierIndexes, suppliers, distinct, distinctIds, null));
    }

    /** The same while suppliers are in shadow: with what they would give, in the layout of Answers.would. */
    public int publish(Batch batch, int[] rows, int[] codes, double[] rates, String[] groups, int[] supplierIndexes,
            String[] suppliers, int[] distinct, ClientIds[] distinctIds, int[] wouldAt, int[] wouldCodes,
            double[] wouldRates, int[] wouldSuppliers) {
        WouldBe[] would =
                Answers.would(codes.length, wouldAt, wouldCodes, wouldRates, wouldSuppliers, groups, suppliers);
        return publish(batch,
                new Answers(rows, codes, rates, groups, supplierIndexes, suppliers, distinct, distinctIds, would));
    }

    private synchronized int publish(Batch batch, Answers answers) {
        var publication = new Publication(scopes, remembered, lookUp.now(), idleSeconds < SENSOR_LIFE_SECONDS);
        int changed = 0;
        for (int i = 0; i < batch.clients().size(); i++) {
            Batch.Lookup lookup = batch.clients().get(i);
            if (publication.store(lookup, answers.of(i))) changed++;
            if (lookup.posted()) counters.resolveTime.record(System.nanoTime() - lookup.postedAt());
        }
        counters.changes.add(changed);
        scopes.bump(publication.reset());
        return changed;
    }

    /** Whether there is a fence in this JVM, which turns requests back in a PAUSE. */
    public boolean fenceInstalled() {
        return Fence.installed();
    }

    /** Sets the host's factor (0..1) and its cause; it is in force until the lease runs out. */
    public void factor(double value, String cause) {
        factorInForce.hostFactor(value, cause, null);
    }

    /**
     * Sets the host's factor (0..1), its cause, and whom it is for: clients that write to these topics.
     *
     * @param topics the affected topics; null for all clients
     * @param places where each topic has its replica on a volume above its soft limit, in words for an operator
     * @param held whether requests to the topic are turned back
     */
    public void factor(double value, String cause, String[] topics, String[] places, boolean[] held) {
        factorInForce.hostFactor(value, cause, topics == null ? null : Affected.of(topics, places, held, slowing.marks()));
    }

    /**
     * The principals and clients in the table with these names, for the host to resolve again; null matches all. A
     * change for a client-id may make it distinct, so each principal is among them.
     */
    public synchronized Batch clients(String principal, String clientId) {
        return remembered.select(p -> principal == null || p.name.equals(principal),
                c -> (principal == null || c.principal.equals(principal))
                        && (clientId == null || c.clientId.equals(clientId)));
    }

    /** The principals and clients for which a supplier failed, for the host to resolve again. */
    public synchronized Batch unresolved() {
        return remembered.select(p -> p.unresolved, c -> c.unresolved);
    }

    // ---- clock and readers -------------------------------------------------------------------------------------

    public Counters counters() {
        return counters;
    }

    public FactorInForce factorInForce() {
        return factorInForce;
    }

    /** Who would be held back by rules in shadow. */
    public Shadows shadows() {
        return shadows;
    }

    public LimitRule rule() {
        return scopes.rule();
    }

    /** Moves the table's clock to so many ms after the start. Watch calls it every BEAT_MS. */
    public synchronized void beat(long ms) {
        int next = (int) (ms / BEAT_MS);
        if (next - lookUp.now() > 0) lookUp.now(next);
        // The next answer ends it; with a full table no request would ask for one.
        for (Principal due; (due = remembered.pollFormer(lookUp.now())) != null;) lookUp.ask(due);
    }

    /** Forgets the clients that have been silent for clients.idle. Watch calls it after each eighth of that time. */
    public synchronized void tick() {
        int eighth = (int) Math.max(1, idleSeconds * 1_000 / TICKS_PER_IDLE / BEAT_MS);
        if (lookUp.now() - tickedAt < eighth) lookUp.now(tickedAt + eighth); // the clock must not fall behind the ticks
        int at = tickedAt = lookUp.now();
        int before = size();
        int longest = TICKS_PER_IDLE * eighth;
        remembered.forEach(principal -> {
            for (Client client : principal.clients.values()) if (client.idle(at) > longest) forget(principal, client);
            if (principal.clients.isEmpty() && principal.idle(at) > longest) forget(principal);
        });
        counters.evicted.add(before - size());
        scopes.sweep(at - longest);
    }

    public long idleSeconds() {
        return idleSeconds;
    }

    /** How many pairs of tags there are. */
    int scopes() {
        return scopes.size();
    }

    /** How many principals and clients are marked, since they write to affected topics. */
    public int marked() {
        return slowing.marks().size();
    }

    /** At most so many of them, as lines of principal, client-id and topic. */
    public List<String> marks(int most) {
        return slowing.marks().lines(most);
    }

    /** The same as a Reply. */
    public String[] replyMarks(int most) {
        return Reply.lines(() -> marks(most).toArray(String[]::new));
    }

    /** How many topics are affected; -1 while the factor is for all clients. */
    public int affectedTopics() {
        Affected now = slowing.affected();
        return now == null ? -1 : now.size();
    }

    /** How many places are taken: a principal takes one, and so does each of its clients beyond the first. */
    public int size() {
        return remembered.size();
    }

    public int clientsMax() {
        return remembered.max();
    }

    /** Whether new clients find no place, or only the first of a principal does. */
    public boolean isFull() {
        return remembered.isFullForClients();
    }

    /** The state of one client, as a line for each quota type (Description). */
    public String[] describe(String principal, String clientId) {
        return describeTypes(principal, clientId).stream().map(Description::line).toArray(String[]::new);
    }

    private synchronized List<Description> describeTypes(String name, String clientId) {
        Principal principal = remembered.principal(name);
        Client client = principal == null ? null : principal.client(clientId);
        boolean exempt = Fence.exempt(Publication.byName(name), clientId);
        String topic = slowing.topic(name, clientId);
        Description.Mark slowed = Description.Mark.of(topic, slowing.affected());
        Bound turnedBack = Bound.turnsBack(name, clientId, topic, slowing.affected());
        List<Description> all = new ArrayList<>();
        for (int type = 0; type < Tags.TYPES; type++) {
            all.add(Description.of(type, principal, client, clientId, exempt, scopes, slowed, shadows, turnedBack));
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
        int at = lookUp.now();
        remembered.forEachClient(client -> {
            for (ClientQuotaType type : Usage.TYPES) {
                long idleMs = (at - client.seen(type.ordinal())) * BEAT_MS;
                if (idleMs <= Usage.RECENT_MS) used.add(Usage.of(client, type, idleMs, isSlowed(client, type)));
            }
        });
        return used;
    }

    /** Who uses what (ClientUses), at most so many scopes, as lines (ClientUse). */
    public String[] uses(int most) {
        return clientUses.list(most).stream().map(ClientUse::line).toArray(String[]::new);
    }

    /** Who uses what as JMX shows it (ClientTable). */
    public TabularData usesTable() {
        return clientTable.read();
    }

    /** Sets how many rows that has at most (metrics.clients). */
    public void showUses(int most) {
        clientTable.most(most);
    }

    /** The same as the lines of uses(), as a Reply. */
    public String[] replyUses(int most) {
        return Reply.lines(() -> uses(most));
    }

    private boolean isSlowed(Client client, ClientQuotaType type) {
        return scopes.rule().factors(type.ordinal()) && slowing.topic(client.principal, client.clientId) != null;
    }

    private void forget(Principal principal, Client client) {
        remembered.remove(principal, client);
        for (int type = 0; type < Tags.TYPES; type++) client.tags(type).drop(type, lookUp.now());
    }

    private void forget(Principal principal) {
        remembered.remove(principal);
        Whole whole = principal.whole();
        for (int type = 0; type < Tags.TYPES; type++) {
            whole.unknown()[type].drop(type, lookUp.now());
            if (whole.tags()[type] != null && whole.tags()[type] != whole.unknown()[type]) {
                whole.tags()[type].drop(type, lookUp.now());
            }
        }
    }
}
