package org.quotahost.table;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
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
 * The quota table: what the host has answered, for the request threads, which only read; it forgets silent clients, and
 * lets Kafka ask for limits.
 *
 * <pre>
 * host     publish()  an Entry of a principal, and its clients' own tags, replaced as a whole; base rates of a Scope
 *          factor()   the factor, and whom it is for
 * watch    beat()     the next Rule (FactorInForce); ends marks; measures stand-ins
 *          evict()    forgets silent clients
 * fence    marks      who asks to write to affected topics
 * request  tags()     principal -> Entry -> Scope -> its own Tags, or its slowed ones; an unknown name goes to the inbox
 *          limit()    Tags x Rule -> the limit, made when Kafka asks for it
 * </pre>
 *
 * <p>Nothing keeps limits up to date: a change replaces the rule and moves a generation on, so that Kafka reads all limits
 * of a type again (quotaResetRequired). Writing is under the table's lock, but for stand-ins and marks; request threads
 * take none.
 *
 * <p>The table has room for clients.max principals and clients (Principals). It forgets one only when it has been silent
 * for clients.idle, by default as long as Kafka keeps its sensor. So no client gets rid of what it has used by being
 * forgotten, and a flood of new names fills the table once and then shares its principal's newcomers' limit.
 */
public final class QuotaTable {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    /** Silent clients are looked for this many times in clients.idle. */
    static final int TICKS_PER_IDLE = 8;
    /** The table's clock, which request threads read instead of the system's, goes on in beats of so many ms. */
    public static final long BEAT_MS = 200;
    /** Arrays "by quota type" go by ClientQuotaType.ordinal(). */
    public static final int TYPES = ClientQuotaType.CONTROLLER_MUTATION.ordinal() + 1;

    /** Kafka drops a sensor that was not used for an hour, by the wall clock (ClientQuotaManager, Sensor.hasExpired). */
    private static final long SENSOR_LIFE_SECONDS = 3_600;
    private static final int EVERY_TYPE = (1 << TYPES) - 1;
    static final int BEATS_PER_SECOND = (int) (1_000 / BEAT_MS);

    // The gauges of the MBean QuotaTable; resolveTime is how long new clients wait for their answer.
    public final LongAdder misses = new LongAdder(), unadmitted = new LongAdder();
    public final LongAdder changes = new LongAdder(), evicted = new LongAdder();
    public final Histogram resolveTime = new Histogram();
    public final FactorInForce factorInForce = new FactorInForce();
    private final Inbox inbox;
    private final LongSupplier clock;
    final Scopes scopes = new Scopes();
    private final Tags exempt = scopes.exempt.own;
    final Principals principals = new Principals();
    final Marks marks = new Marks(() -> this.now, this::markEnded);
    private final StandIns standIns = new StandIns(scopes);
    /** Whom the host's factors of the volumes and of budgets are for. */
    private SlowedTopics ofVolumes;
    private List<SlowedTopics> budgets = List.of();
    private volatile long idleSeconds = SENSOR_LIFE_SECONDS;
    /** In beats since the start. */
    volatile int now;
    private int evictedAt, sweptAt;
    private final LineLimit fullLines = new LineLimit(1);
    private long unadmittedBefore;

    public QuotaTable(Inbox inbox) {
        this(inbox, () -> TimeUnit.NANOSECONDS.toMillis(System.nanoTime()));
    }

    /** @param clock monotonic, in ms; limits move by it */
    QuotaTable(Inbox inbox, LongSupplier clock) {
        this.inbox = inbox;
        this.clock = clock;
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** The tags of a client for a quota type (ClientQuotaCallback.quotaMetricTags). */
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
        String group = own != exempt && rule.factors(type) ? marks.group(name, clientId, rule.slowing()) : null;
        Tags tags = group == null ? own : own.scope.slowed(group);
        // A client that was marked before has another scope: it rises as if the mark began now. After a mere pause nothing begins:
        // Kafka may still have the whole limit. If the client sends by that and gets a smaller one, it is muted beyond max.mute.
        if (tags.note(type, now, rule) && group != null) marks.changed();
        return tags;
    }

    /** The scope of a client that has nothing of its own in the table. */
    Scope scopeOf(int type, Entry entry, boolean isExempt) {
        if (isExempt) return scopes.exempt;
        // Never a scope that other principals share with a known one.
        return entry == null ? scopes.newcomers : entry.unknown(type, now);
    }

    /** A client that the table doesn't know goes to the inbox, if there is a place for it. */
    private void ask(Entry entry, String name, String clientId) {
        misses.increment();
        // Without a place for the client, the answer for its principal is still to be had.
        boolean asks = entry == null ? !principals.isFull() : !entry.answered() || principals.hasPlaceFor(entry);
        if (!asks) unadmitted.increment();
        else if (Names.keepsPrincipal(name)) inbox.postClient(name, clientId);
    }

    /**
     * The limit of a scope, null for unlimited (ClientQuotaCallback.quotaLimit). Kafka may hand the tags back as a
     * copy; unknown ones have the newcomers' limit.
     */
    public Double limit(int type, Map<String, String> tags) {
        try {
            Tags known = tags instanceof Tags ours ? ours : scopes.find(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
            return (known == null ? scopes.newcomers.own : known).limit(type, factorInForce.rule());
        } catch (VirtualMachineError e) { // such as a full heap: what Kafka gets instead it would keep until limits change
            factorInForce.settleLater(type, now);
            throw e;
        }
    }

    /** Grows whenever limits of a type have changed that Kafka may have in its sensors (quotaResetRequired). */
    public int generation(int type) {
        return factorInForce.generation(type);
    }

    public Map<String, String> newcomers() {
        return scopes.newcomers.own;
    }

    public Map<String, String> unlimited() {
        return scopes.unlimited.own;
    }

    public Map<String, String> turnedBack() {
        return scopes.turnedBack.own;
    }

    // ---- the host --------------------------------------------------------------------------------------------

    /**
     * Takes the settings over (clients.max, clients.idle in s, floor.bytes, factor.quota.types, newcomers.*, NaN for
     * unlimited), which may change while the broker runs, but for max.
     *
     * @param measured the quota types for which clients without a quota are measured, too: a factor may act on what they
     *     use, or a plugin reads it. They have no sensors of their own in all other types
     */
    public synchronized void configure(int max, long idle, double floorBytes, String[] factored, double[] newcomerRates,
            String[] measured) {
        principals.max = max;
        idleSeconds = idle;
        Set<ClientQuotaType> types = EnumSet.noneOf(ClientQuotaType.class);
        for (String name : factored) types.add(ClientQuotaType.valueOf(name));
        boolean[] measuredTypes = new boolean[TYPES];
        for (String name : measured) measuredTypes[ClientQuotaType.valueOf(name).ordinal()] = true;
        scopes.measured = measuredTypes;
        factorInForce.configure(floorBytes, types);
        Fence.allowance(floorBytes);
        Fence.addresses(principals::from);
        follow();
        for (int type = 0; type < TYPES; type++) {
            if (scopes.newcomers.base(type, newcomerRates[type])) factorInForce.renew(1 << type, now);
        }
    }

    /** Kafka's windows (quota.window.*), and max.mute; from the next configure() on, or the next beat. */
    public synchronized void configureTap(int windows, long windowMs, long maxMuteMs) {
        factorInForce.windows = new Tap.Windows(windows, windowMs, maxMuteMs);
    }

    /** As above, the rules that are not enforced; suppliers and topics are the business of the host and of TopicQuotas. */
    public synchronized void shadow(List<String> rules) {
        factorInForce.shadow = rules;
    }

    /** A set of client-ids that the host hands over once and refers to in many answers. */
    public static Set<String> clientIds(String[] ids) {
        return Arrays.stream(ids).filter(Names::keeps).collect(Collectors.toSet());
    }

    /** Forgets who is exempt from now on: of the exempt the table keeps nothing, and asks the host nothing. */
    public synchronized void forgetExempt() {
        principals.forEach(entry -> {
            for (TagHolder client : entry.clients.values()) {
                if (Exemptions.reason(entry.principal, client.clientId) != null) principals.remove(entry, client);
            }
            if (Exemptions.reason(entry.principal, null) != null) principals.remove(entry);
        });
    }

    /**
     * Takes over the host's answers for a batch. Many clients have the same answer, so each is there once: client i of the
     * batch has that at numbers[i], unless it is exempt since the host has taken the batch.
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
            // After a failure, too: what is stored by then makes no difference when it is answered again.
            factorInForce.renew(publication.changed, now);
        }
    }

    /** The host's factor (0..1) of the volumes, and the topics whose writers it is for; null for all clients. */
    public synchronized void factor(double value, String cause, SlowedTopics whom) {
        affect(new Factor(value, cause), whom, budgets);
    }

    /** The budgets whose writers have factors of their own. Those of a host before this one hold until then. */
    public synchronized void budgets(List<SlowedTopics> slowed) {
        affect(factorInForce.hostFactor(), ofVolumes, slowed);
    }

    /** All or nothing, also where the heap is full: a factor without its topics would be for all clients. */
    private void affect(Factor factor, SlowedTopics whom, List<SlowedTopics> slowed) {
        List<SlowedTopics> groups = new ArrayList<>(slowed);
        if (whom != null) groups.add(0, whom);
        factorInForce.hostAffected = groups.isEmpty() ? null : marks.affected(factor.value(), groups);
        factorInForce.hostFactor = factor;
        ofVolumes = whom;
        budgets = slowed;
        follow();
    }

    /**
     * Topics whose writers share a factor: those of a budget, or those on volumes above their soft limits.
     *
     * @param group the budget's name; VOLUMES for the latter
     * @param error with which a closed fence turns back requests to its held topics, made beforehand
     * @param topics a topic may be in several groups; that with the smallest factor counts
     * @param places where each topic has its replica on such a volume, or which budget it uses, in words for an operator
     * @param held those of the topics to which requests are turned back; a set that names which were chosen to collide make no
     *     slower, as that of Set.of is
     */
    public record SlowedTopics(String group, double factor, RuntimeException error, String[] topics, String[] places,
            Set<String> held) {
        public static final String VOLUMES = "";

        boolean isHeld() {
            return factor <= 0 && held.size() == topics.length;
        }
    }

    /**
     * Sets the host's further factors by quota type, above 0 to 1, with their causes: beside the other factors, whatever
     * factor.quota.types says, the smallest holds for all clients. None of them is ever a PAUSE.
     */
    public synchronized void factorsOfTypes(double[] factors, String[] causes) {
        Factor[] ofTypes = new Factor[TYPES];
        for (int type = 0; type < TYPES; type++) {
            ofTypes[type] = new Factor(factors[type], causes[type]);
        }
        factorInForce.ofTypes = ofTypes;
        follow();
    }

    /** Puts the fallback's factor in force, while the host is silent; null gives the host's back. */
    public synchronized void fallback(Double factor) {
        factorInForce.fallback = factor;
        follow();
    }

    /**
     * Has the host resolve again who is in the table with these names; null matches all. A change for a client-id may make
     * it distinct, so each principal is among them.
     */
    public void askAgain(String principal, String clientId) {
        Predicate<TagHolder> matches = holder ->
                clientId == null || holder.clientId == null || holder.clientId.equals(clientId);
        Entry entry = principal == null ? null : principals.entry(principal);
        if (principal == null) principals.forEach(any -> askAgain(any, matches));
        else if (entry != null) askAgain(entry, matches);
    }

    /** The same for those for whom a supplier failed. */
    public void askAgainTheFailed() {
        principals.forEach(entry -> askAgain(entry, holder -> holder.failed));
    }

    /** What holds for a principal may depend on any of its client-ids, so it is asked for by a client-id of its own. */
    private void askAgain(Entry entry, Predicate<TagHolder> matches) {
        boolean asked = entry.answer.alike() && matches.test(entry);
        if (asked) inbox.askAgain(new Batch.Lookup(entry.principal, entry.sample(), 0));
        for (TagHolder client : entry.clients.values()) {
            if (matches.test(client)) inbox.askAgain(new Batch.Lookup(entry.principal, client.clientId, 0));
        }
    }

    // ---- the factor and the marks, under the lock ---------------------------------------------------------------

    /** Has the next rule hold, and the fence and the marks follow the factor in force. */
    private void follow() {
        Rule last = factorInForce.rule(), next = factorInForce.next(clock.getAsLong(), now, standIns.lookedAt);
        Marks.Affected topics = next.affected();
        Fence.state(factorInForce.paused(), factorInForce.turnsBack(topics), factorInForce.inShadow(), topics);
        if (last.slowing() != null && next.slowing() == null) endMarks(null);
        else if (last.affected() != topics || now - sweptAt >= BEATS_PER_SECOND) endMarks(topics);
        // While a client is on its way from slowed tags to own ones or back, its windows fill and empty with the time.
        // The last limits were made by the last rule's beat, from which this one may be far: the watch may have stood still.
        factorInForce.hold(next, last.now() - marks.changedAt() < next.backBeats());
    }

    /** Of who has not written to these topics lately, and of topics that have gone over to another group; null for all marks. */
    private void endMarks(Marks.Affected topics) {
        sweptAt = now;
        Marks.Affected before = factorInForce.rule().affected();
        marks.sweep(topic -> before != null && topics != null && topics.topics().containsKey(topic)
                && topics.group(topic).equals(before.group(topic)));
    }

    /** The watch and the host say so, and request threads of a mark that goes over to another group. */
    private void markEnded(String name, String clientId) {
        Entry entry = principals.entry(name);
        if (entry == null) return; // who isn't known shares the newcomers' tags
        TagHolder marked = clientId == null ? null : entry.client(clientId);
        for (int type = 0; type < TYPES; type++) {
            (marked != null ? marked.tags(type).scope : entry.unknown(type, now)).markEnded(now);
            if (clientId != null) continue;
            for (TagHolder client : entry.clients.values()) client.tags(type).scope.markEnded(now);
        }
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /** Moves the table's clock to so many ms after the start, and limits with it. The watch calls it every BEAT_MS. */
    public void beat(long ms) {
        synchronized (this) {
            int next = (int) (ms / BEAT_MS);
            if (next - now > 0) now = next;
            follow();
        }
        boolean measured = true; // where the heap is full halfway, too
        try {
            measured = standIns.measure(factorInForce.rule(), now); // it reads MBeans, and so not under the lock
        } finally {
            synchronized (this) {
                factorInForce.renew(measured ? EVERY_TYPE : 0, now);
                factorInForce.settle(now);
            }
        }
    }

    /** Forgets the clients that have been silent for clients.idle, each eighth of that time. */
    public synchronized void evict() {
        int eighth = eighth();
        if (now - evictedAt < eighth) return;
        evictedAt = now;
        int before = principals.size;
        Set<Scope> had = principals.forgetIdle(now, TICKS_PER_IDLE * eighth);
        evicted.add(before - principals.size);
        // Kafka looks for unused sensors now and then, so it may keep one for somewhat longer.
        scopes.sweep(now - 2 * TICKS_PER_IDLE * eighth, had);
    }

    /** An eighth of clients.idle, in beats; of more than three years that of three, so that differences of beats fit. */
    int eighth() {
        return (int) Math.min(1 << 26, Math.max(1, idleSeconds * 1_000 / TICKS_PER_IDLE / BEAT_MS));
    }

    public void logFull() {
        long now = unadmitted.sum();
        if (now != unadmittedBefore && fullLines.pass() != LineLimit.NO) {
            LOG.warn("The quota table is full ({}clients.max={}), or one principal has as many clients as are left for others:"
                    + " further ones share a newcomers' limit until some have been silent for clients.idle",
                    BrokerConfigs.PREFIX, principals.max);
        }
        unadmittedBefore = now;
    }

    // ---- readers -----------------------------------------------------------------------------------------------

    public int marked() {
        return marks.size();
    }

    public int affectedTopics() {
        Marks.Affected topics = factorInForce.rule().affected();
        return topics == null ? -1 : topics.ofVolumes();
    }

    public int size() {
        return principals.size;
    }

    public int clientsMax() {
        return principals.max;
    }
}
