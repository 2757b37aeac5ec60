package org.quotahost.table;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.table.FactorInForce.Factor;
import org.quotahost.table.Principals.Entry;
import org.quotahost.table.Principals.TagHolder;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Histogram;
import org.quotahost.util.LineLimit;
import org.quotahost.util.Names;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The quota table: the host's answers, which request threads only read; it also forgets silent clients, and makes Kafka ask for
 * limits.
 *
 * <pre>
 * host     publish()  an Entry of a principal, and its clients' own tags, replaced as a whole; base rates of a Scope
 *          factor()   the factor, and the clients that it is for
 * watch    beat()     the next Rule (FactorInForce); ends marks; measures stand-ins
 *          evict()    forgets silent clients
 * fence    marks      the clients that ask to write to affected topics
 * request  tags()     principal -> Entry -> Scope -> its own Tags, or its slowed ones; an unknown name goes to the inbox
 *          limit()    Tags x Rule -> the limit, made when Kafka asks for it
 * </pre>
 *
 * <p>Nothing keeps limits up to date: a change replaces the rule and increments a generation, so that Kafka reads all limits of
 * a type again (quotaResetRequired). Writers hold the table's lock, except for stand-ins and marks; request threads take no
 * lock.
 *
 * <p>The table has room for clients.max principals and clients (Principals). It forgets a client only after the client was
 * silent for clients.idle, by default as long as Kafka keeps its sensor. So a client cannot reset its usage by being forgotten,
 * and a flood of new names fills the table once and then shares the newcomers' limit of its principal.
 */
public final class QuotaTable {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    /** Silent clients are looked for this many times per clients.idle. */
    static final int TICKS_PER_IDLE = 8;
    /** The table's clock, which request threads read instead of the system's, advances in beats of so many ms. */
    public static final long BEAT_MS = 200;
    /** The length of arrays "by quota type", whose index is ClientQuotaType.ordinal(). */
    public static final int TYPES = ClientQuotaType.CONTROLLER_MUTATION.ordinal() + 1;

    /** Kafka drops a sensor that was not used for an hour, by the wall clock (ClientQuotaManager, Sensor.hasExpired). */
    private static final long SENSOR_LIFE_SECONDS = 3_600;
    static final int BEATS_PER_SECOND = (int) (1_000 / BEAT_MS);

    // The gauges of the MBean QuotaTable. resolveTime is the time that new clients wait for their answer.
    public final LongAdder misses = new LongAdder(), unadmitted = new LongAdder();
    public final LongAdder changes = new LongAdder(), evicted = new LongAdder();
    public final Histogram resolveTime = new Histogram();
    public final FactorInForce factorInForce = new FactorInForce();
    private final Inbox inbox;
    final Scopes scopes = new Scopes();
    private final Tags exempt = scopes.exempt.own;
    public final Map<String, String> newcomers = scopes.newcomers.own, unlimited = scopes.unlimited.own;
    public final Map<String, String> turnedBack = scopes.turnedBack.own;
    final Principals principals = new Principals();
    final Marks marks = new Marks(() -> this.now, this::markEnded);
    private final StandIns standIns = new StandIns(scopes);
    /** The clients that the host's factors of the volumes and of budgets are for. */
    private SlowedTopics ofVolumes;
    private List<SlowedTopics> budgets = List.of();
    private volatile long idleSeconds = SENSOR_LIFE_SECONDS;
    /** In beats since the start. */
    volatile int now;
    private int evictedAt, sweptAt;
    private final LineLimit fullLines = new LineLimit(1);
    private long unadmittedBefore;

    public QuotaTable(Inbox inbox) {
        this.inbox = inbox;
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Returns the tags of a client for a quota type (ClientQuotaCallback.quotaMetricTags). */
    public Map<String, String> tags(int type, KafkaPrincipal principal, String claimed) {
        String name = principal.getName(), clientId = claimed;
        TagHolder holder = principals.quick(name, clientId);
        Entry entry = null;
        if (holder == null) {
            clientId = Names.kept(claimed);
            entry = principals.entry(name);
            if (entry != null) holder = entry.holder(clientId);
        }
        Tags own;
        if (holder != null) {
            own = holder.tags(type);
            holder.see(now);
        } else {
            boolean isExempt = Exemptions.exempt(principal, clientId);
            if (entry != null) entry.see(now);
            if (!isExempt && (entry == null || entry.needs(clientId))) ask(entry, name, clientId);
            own = scopeOf(type, entry, isExempt).own;
        }
        Rule rule = factorInForce.rule();
        String group = own == exempt ? null : marks.group(name, clientId, rule.slowing(type));
        Tags tags = group == null ? own : own.scope.slowed(group);
        // If a marked client gets another scope, its limit rises as if the mark began now. A mere pause begins nothing, since
        // Kafka may still have the full limit: a client that sends at it and then gets a smaller one is muted beyond max.mute.
        if (tags.note(type, now, rule) && group != null) marks.changed();
        return tags;
    }

    /** Returns the scope of a client that has nothing of its own in the table. */
    Scope scopeOf(int type, Entry entry, boolean isExempt) {
        if (isExempt) return scopes.exempt;
        // A known principal never shares a newcomers' scope with other principals.
        return entry == null ? scopes.newcomers : entry.unknown(type, now);
    }

    /** Posts a client that the table does not know to the inbox, if there is a place for it. */
    private void ask(Entry entry, String name, String clientId) {
        misses.increment();
        // If there is no place for the client, the principal's answer is still useful.
        boolean asks = entry == null ? !principals.isFull() : !entry.answered() || principals.hasPlaceFor(entry);
        if (!asks) unadmitted.increment();
        else if (Names.keepsPrincipal(name)) inbox.postClient(name, clientId);
    }

    /**
     * Returns the limit of a scope, null for unlimited (ClientQuotaCallback.quotaLimit). Kafka may pass a copy of the tags;
     * unknown tags have the newcomers' limit.
     */
    public Double limit(int type, Map<String, String> tags) {
        try {
            Tags known = tags instanceof Tags ours ? ours : scopes.next(type, tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
            return (known == null ? scopes.newcomers.own : known).limit(type, factorInForce.rule());
        } catch (VirtualMachineError e) { // e.g. a full heap: Kafka would keep the wrong limit until limits change
            factorInForce.settleLater(type, now);
            throw e;
        }
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /**
     * Sets clients.max, clients.idle (in s), floor.bytes, factor.quota.types and newcomers.* (NaN for unlimited). All except
     * the first two may change while the broker runs.
     *
     * @param measured the quota types for which clients without a quota are measured, too, since a factor may act on their
     *     usage or a plugin reads it. For all other types these clients have no sensors of their own
     */
    public synchronized void configure(int max, long idle, double floorBytes, String[] factored, double[] newcomerRates,
            String[] measured) {
        principals.max = max;
        idleSeconds = idle;
        scopes.measured = types(measured);
        factorInForce.factored = types(factored);
        factorInForce.floorBytes = floorBytes;
        Fence.addresses(principals::from);
        follow();
        for (int type = 0; type < TYPES; type++) {
            if (scopes.newcomers.base(type, newcomerRates[type])) factorInForce.renew(1 << type, now);
        }
    }

    private static Set<ClientQuotaType> types(String[] names) {
        return Arrays.stream(names).map(ClientQuotaType::valueOf).collect(Collectors.toSet());
    }

    /** Sets Kafka's windows (quota.window.*) and max.mute; they apply from the next configure() or the next beat. */
    public synchronized void configureTap(int windows, long windowMs, long maxMuteMs) {
        factorInForce.windows = new Tap.Windows(windows, windowMs, maxMuteMs);
    }

    /** Sets the rules that are not enforced, as above. The host and TopicQuotas handle suppliers and topics in shadow. */
    public synchronized void shadow(List<String> rules) {
        factorInForce.shadow = rules;
    }

    /** Forgets the clients that are exempt from now on: the table keeps nothing of exempt clients, and does not ask the host. */
    public synchronized void forgetExempt() {
        principals.forEach(entry -> {
            for (TagHolder client : entry.clients.values()) {
                if (Exemptions.reason(entry.principal, client.clientId) != null) principals.remove(entry, client);
            }
            if (Exemptions.reason(entry.principal, null) != null) principals.remove(entry);
        });
    }

    /**
     * Stores the host's answers for a batch. Many clients have the same answer, so each answer is sent once: numbers[i] is the
     * answer's index for client i of the batch. Clients that have become exempt since the host took the batch are skipped.
     */
    public synchronized void publish(Batch batch, int[] numbers, List<Answer> answers) {
        var publication = new Publication(this, idleSeconds < SENSOR_LIFE_SECONDS);
        try {
            for (int i = 0; i < batch.clients().size(); i++) {
                Batch.Lookup lookup = batch.clients().get(i);
                if (Exemptions.reason(lookup.principal(), lookup.clientId()) != null) continue;
                if (publication.store(lookup, answers.get(numbers[i]))) changes.increment();
                if (lookup.posted()) resolveTime.record(System.nanoTime() - lookup.postedAt());
            }
        } finally {
            // Also after a failure: answers that were stored before the failure show no change when the host repeats them.
            factorInForce.renew(publication.changed, now);
        }
    }

    /** Sets the host's factor (0..1) of the volumes, and the topics whose writers it is for; null for all clients. */
    public synchronized void factor(double value, String cause, SlowedTopics whom) {
        affect(new Factor(value, cause), whom, budgets);
    }

    /** Sets the budgets whose writers have factors of their own. Until a new host calls this, the old host's budgets hold. */
    public synchronized void budgets(List<SlowedTopics> slowed) {
        affect(factorInForce.hostFactor(), ofVolumes, slowed);
    }

    /** Changes all or nothing, even if the heap is full: a factor without its topics would be for all clients. */
    private void affect(Factor factor, SlowedTopics whom, List<SlowedTopics> slowed) {
        List<SlowedTopics> groups = new ArrayList<>(slowed);
        if (whom != null) groups.add(0, whom);
        factorInForce.hostAffected = groups.isEmpty() ? null : marks.affected(factor.value(), groups, factorInForce.hostAffected);
        factorInForce.hostFactor = factor;
        ofVolumes = whom;
        budgets = slowed;
        follow();
    }

    /**
     * Topics whose writers share a factor: those of a budget, or those on volumes above their soft limits.
     *
     * @param group the budget's name, or VOLUMES
     * @param error the error with which a closed fence turns back requests to held topics, made beforehand
     * @param topics a topic may be in several groups; the group with the smallest factor counts
     * @param places for each topic the place of its replica on such a volume, or its budget, in words for an operator
     * @param held the topics to which requests are turned back, in a set that stays fast if names were chosen to collide;
     *     Set.of does not
     */
    public record SlowedTopics(String group, double factor, RuntimeException error, String[] topics, String[] places,
            Set<String> held) {
        public static final String VOLUMES = "";

        boolean isHeld() {
            return factor <= 0 && held.size() == topics.length;
        }
    }

    /**
     * Sets the host's further factors by quota type (above 0, up to 1) and their causes. They apply to all clients beside the
     * other factors, whatever factor.quota.types says, and the smallest factor wins. None of them is ever a PAUSE.
     */
    public synchronized void factorsOfTypes(double[] factors, String[] causes) {
        Factor[] ofTypes = new Factor[TYPES];
        for (int type = 0; type < TYPES; type++) {
            ofTypes[type] = new Factor(factors[type], causes[type]);
        }
        factorInForce.ofTypes = ofTypes;
        follow();
    }

    /** Puts the fallback's factor into force while the host is silent; null restores the host's factor. */
    public synchronized void fallback(Double factor) {
        factorInForce.fallback = factor;
        follow();
    }

    /**
     * Makes the host resolve again the clients and principals of the table with these names; null matches all names. Principals
     * always match any client-id, since a change may make a client-id distinct.
     */
    public void askAgain(String principal, String clientId) {
        Predicate<TagHolder> matches = holder ->
                clientId == null || holder.clientId == null || holder.clientId.equals(clientId);
        Entry entry = principal == null ? null : principals.entry(principal);
        if (principal == null) principals.forEach(any -> askAgain(any, matches));
        else if (entry != null) askAgain(entry, matches);
    }

    /** Makes the host resolve again the clients and principals for which a supplier failed. */
    public void askAgainTheFailed() {
        principals.forEach(entry -> askAgain(entry, holder -> holder.failed));
    }

    /** Asks for the principal separately, with its sample client-id, since its answer may depend on any of its client-ids. */
    private void askAgain(Entry entry, Predicate<TagHolder> matches) {
        boolean asked = entry.answer.alike() && matches.test(entry);
        if (asked) inbox.askAgain(new Batch.Lookup(entry.principal, entry.sample(), 0));
        for (TagHolder client : entry.clients.values()) {
            if (matches.test(client)) inbox.askAgain(new Batch.Lookup(entry.principal, client.clientId, 0));
        }
    }

    // ---- the factor and the marks, under the lock ---------------------------------------------------------------

    /** Puts the next rule into force, and makes the fence and the marks follow the factor in force. */
    private void follow() {
        Rule last = factorInForce.rule(), next = factorInForce.next(now, standIns.lookedAt);
        Marks.Affected topics = next.affected();
        Fence.state(factorInForce.paused(), factorInForce.turnsBack(topics), factorInForce.inShadow(), topics,
                factorInForce.floorBytes);
        if (!last.slowed().isEmpty() && next.slowed().isEmpty()) endMarks(null);
        else if (last.affected() != topics || now - sweptAt >= BEATS_PER_SECOND) endMarks(topics);
        // After a client has changed between slowed and own tags, limits change at each beat, since its windows fill and empty.
        // The last limits were made at the last rule's beat, which may be far from this one if the watch stood still.
        factorInForce.hold(next, last.now() - marks.changedAt() < next.backBeats());
    }

    /** Ends the marks of clients that have not written to these topics lately, and of topics in another group now; null for all. */
    private void endMarks(Marks.Affected topics) {
        sweptAt = now;
        Marks.Affected before = factorInForce.rule().affected();
        marks.sweep(topic -> before != null && topics != null && topics.topics().containsKey(topic)
                && topics.group(topic).equals(before.group(topic)));
    }

    /** Tells the scopes that a mark has ended. The watch, the host, and request threads (a mark moves to another group) call this. */
    private void markEnded(String name, String clientId) {
        Entry entry = principals.entry(name);
        if (entry == null) return; // an unknown principal shares the newcomers' tags
        TagHolder marked = clientId == null ? null : entry.client(clientId);
        for (int type = 0; type < TYPES; type++) {
            (marked != null ? marked.tags(type).scope : entry.unknown(type, now)).markEnded(now);
            if (clientId != null) continue;
            for (TagHolder client : entry.clients.values()) client.tags(type).scope.markEnded(now);
        }
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /** Moves the table's clock to so many ms after the start, and the limits with it. The watch calls this every BEAT_MS. */
    public void beat(long ms) {
        synchronized (this) {
            int next = (int) (ms / BEAT_MS);
            if (next - now > 0) now = next;
            follow();
        }
        int measured = -1; // every type: it stays so if the heap is full halfway
        try {
            measured = standIns.measure(factorInForce.rule(), now); // not under the lock, since it reads MBeans
        } finally {
            synchronized (this) {
                factorInForce.renew(measured, now);
                factorInForce.settle(now);
            }
        }
    }

    /** Forgets the clients that have been silent for clients.idle. The work is done once in an eighth of that time. */
    public synchronized void evict() {
        int eighth = eighth();
        if (now - evictedAt < eighth) return;
        evictedAt = now;
        int before = principals.size;
        Set<Scope> had = principals.forgetIdle(now, TICKS_PER_IDLE * eighth);
        evicted.add(before - principals.size);
        // Kafka looks for unused sensors only now and then, so it may keep a sensor for somewhat longer.
        scopes.sweep(now - 2 * TICKS_PER_IDLE * eighth, had);
    }

    /** Returns an eighth of clients.idle in beats, at most that of three years, so that differences of beats fit into an int. */
    int eighth() {
        return (int) Math.min(1 << 26, Math.max(1, idleSeconds * 1_000 / TICKS_PER_IDLE / BEAT_MS));
    }

    public void logFull() {
        long now = unadmitted.sum();
        if (now != unadmittedBefore && fullLines.pass() != LineLimit.NO) {
            LOG.warn("The quota table is full ({}clients.max={}), or one principal has as many clients as there are free places:"
                    + " further clients share a newcomers' limit until others have been silent for clients.idle",
                    BrokerConfigs.PREFIX, principals.max);
        }
        unadmittedBefore = now;
    }

    // ---- getters -----------------------------------------------------------------------------------------------

    public int marked() {
        return marks.size();
    }

    /** Returns the number of topics on volumes above their soft limits; -1 while the volumes' factor is for all clients. */
    public int affectedTopics() {
        Marks.Affected topics = factorInForce.rule().affected();
        SlowedTopics volumes = topics == null ? null : topics.groups().get(SlowedTopics.VOLUMES);
        return volumes == null ? -1 : volumes.topics().length;
    }

    public int size() {
        return principals.size;
    }

    public int clientsMax() {
        return principals.max;
    }
}
