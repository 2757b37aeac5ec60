package org.quotahost.table;

import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/**
 * Keeps a factor to those clients who write to affected topics, while it is for them only: their marks, the twins of
 * their scopes, and how the limits of tags rise that begin with empty windows.
 *
 * <p>The fence marks a client before its request is counted (Marks); from then on LookUp gives it the twin's tags. When
 * the mark ends it has the scope's own again. A twin, and a scope's own tags if nobody else had them meanwhile, begin
 * with empty windows: their limit rises by Tap.rise, or a client could send a whole window's bytes at once. Where it
 * comes back sooner they are as much emptier as it was away (Filling). All but the first two methods are called under the
 * table's lock.
 */
final class Slowing {
    /** A smaller change of a share isn't worth it: each makes Kafka scan all its sensors. */
    private static final double STEP = 1.1;
    /** Marks that nobody renews are looked for every second. */
    private static final int SWEEP_BEATS = (int) (1_000 / QuotaTable.BEAT_MS);

    private final Scopes scopes;
    private final Remembered remembered;
    private final LookUp lookUp;
    private final Marks marks;
    /** Null while the factor is for all clients. */
    private volatile Affected affected;
    /** Clients are marked, but none has a twin: the factor is in shadow. */
    private boolean inShadow;
    /** The beat at which it began to be for some only. */
    private int since;
    private int sweptAt;
    private int windows = 11;
    private long windowMs = 1_000;
    private Filling.Back back = new Filling.Back(12_200, 0.286);
    /** Scopes whose twin is new; request threads add to it, once for each twin. */
    private final Queue<Tags> split = new ConcurrentLinkedQueue<>();
    /** Scopes with a twin, and how full its windows may be. */
    private final Map<Tags, Filling> twins = new IdentityHashMap<>();
    /** The same of the scopes whose own limit rises. */
    private final Map<Tags, Filling> rising = new IdentityHashMap<>();
    /** Tags that clients have again whose mark has ended. */
    private final Queue<Tags> freed = new ConcurrentLinkedQueue<>();

    Slowing(Scopes scopes, Remembered remembered, LookUp lookUp) {
        this.scopes = scopes;
        this.remembered = remembered;
        this.lookUp = lookUp;
        this.marks = new Marks(remembered::max);
    }

    // ---- any thread ------------------------------------------------------------------------------------------

    /** What a client has in place of the tags of its scope: their twin if it is slowed, else these themselves. */
    TagPair tags(Tags own, int type, KafkaPrincipal principal, String clientId) {
        if (own == scopes.exempt || !scopes.rule().factors(type)) return own;
        int beat = lookUp.now();
        if (!marks.has(principal.getName(), clientId)) {
            if (type == Tags.PRODUCE) own.see(beat);
            return own;
        }
        Twin twin = own.twin();
        if (twin == null) split.add(own);
        if (twin == null) twin = own.split();
        twin.see(beat);
        return twin;
    }

    /** The affected topics, or null if the factor is for all clients. */
    Affected affected() {
        return affected;
    }

    // ---- the host --------------------------------------------------------------------------------------------

    Marks marks() {
        return marks;
    }

    /** Takes over Kafka's windows, quota.window.num and quota.window.size.seconds in ms, and max.mute in ms. */
    void configure(int number, long ms, long maxMuteMs) {
        windows = number;
        windowMs = ms;
        back = new Filling.Back((number + 1) * ms + QuotaTable.BEAT_MS, Tap.stepShare(number, ms, maxMuteMs));
        scopes.twinsBeginWith(rise(0));
    }

    /**
     * The factor is for those who write to these topics, or with null for all clients. Answers whether it was for all
     * before and is not now, or the other way round. In shadow nobody is slowed, and who would be is marked.
     */
    boolean affect(Affected topics, boolean shadow) {
        if (topics == affected && shadow == inShadow) return false;
        boolean before = slows();
        affected = topics;
        inShadow = shadow;
        boolean turns = slows() != before;
        if (turns && slows()) since = lookUp.now();
        lookUp.slow(slows() ? this : null);
        // All whom it has slowed until now have their scopes' own limits again.
        if (before && !slows()) marks.sweep(any -> false, this::ended);
        else sweep();
        return turns;
    }

    /** Whether the factor is for some clients only, and in force. */
    boolean slows() {
        return affected != null && !inShadow;
    }

    /** The affected topic for which a client is marked, or null. */
    String topic(String principal, String clientId) {
        return affected == null ? null : marks.topic(principal, clientId);
    }

    // ---- the watch -------------------------------------------------------------------------------------------

    /**
     * Ends marks and takes rising limits on.
     *
     * @param reset set by quota type if Kafka has to read its limits again
     * @return whether any is set
     */
    boolean step(long nowMs, boolean[] reset) {
        marks.now(lookUp.now());
        if (affected != null && lookUp.now() - sweptAt >= SWEEP_BEATS) sweep();
        for (Tags each; (each = split.poll()) != null;) twins.putIfAbsent(each, new Filling(nowMs));
        for (Tags each; (each = freed.poll()) != null;) free(each, nowMs);
        twins.entrySet().removeIf(each -> !growsTwin(each.getKey(), each.getValue(), nowMs, reset));
        rising.entrySet().removeIf(each -> !growsOwn(each.getKey(), each.getValue().forMs(nowMs, back), reset));
        boolean any = false;
        for (boolean each : reset) any |= each;
        return any;
    }

    /**
     * Clients have their own tags again. What they sent by the twin Kafka doesn't count there, so for as long as nobody had
     * these tags they may not send by them now. From now on the same is true of the twin.
     */
    private void free(Tags own, long nowMs) {
        long unseenMs = (lookUp.now() - Math.max(own.seen(), since)) * QuotaTable.BEAT_MS;
        rising.computeIfAbsent(own, full -> new Filling(nowMs - unseenMs - back.ms())).away(unseenMs, nowMs, back);
        Filling twin = twins.get(own);
        if (twin != null) twin.leave(nowMs, lookUp.now());
    }

    /** Kafka's windows may contain something of a time at which tags were had. */
    private boolean isRecent(int seen) {
        return lookUp.now() - seen <= back.ms() / QuotaTable.BEAT_MS;
    }

    /** Raises a twin's limits. Answers false once nobody has had it for as long as Kafka looks back: then it is gone. */
    private boolean growsTwin(Tags tags, Filling filling, long nowMs, boolean[] reset) {
        Twin twin = tags.twin();
        boolean had = twin != null && isRecent(twin.seen());
        if (!had) tags.unite();
        else if (filling.isBack(twin.seen())) filling.comeBack(nowMs);
        double share = rise(had ? filling.forMs(nowMs, back) : 0);
        if (had && !isWorthIt(tags.twinShare(), share)) return true;
        tags.twinShare(share);
        for (int type = 0; type < Tags.TYPES; type++) reset[type] |= tags.refresh(type, scopes.rule());
        return had;
    }

    /** Raises a scope's own limit of PRODUCE. Answers false once its windows are as full as any. */
    private boolean growsOwn(Tags tags, long forMs, boolean[] reset) {
        double share = rise(forMs);
        if (isWorthIt(tags.share(), share)) {
            tags.share(share);
            reset[Tags.PRODUCE] |= tags.refresh(Tags.PRODUCE, scopes.rule());
        }
        return forMs < back.ms();
    }

    private static boolean isWorthIt(double before, double share) {
        return share >= LimitRule.WHOLE ? before < share : share >= STEP * before || before >= STEP * share;
    }

    private double rise(long forMs) {
        return Tap.rise(forMs, windows, windowMs);
    }

    private void sweep() {
        sweptAt = lookUp.now();
        marks.now(sweptAt);
        Affected now = affected;
        marks.sweep(topic -> now != null && now.affects(topic), slows() ? this::ended : (principal, clientId) -> {});
    }

    /** A mark has ended: of a client, of a principal (null for the client-id), or of everybody (null for both). */
    private void ended(String name, String clientId) {
        Principal principal = name == null ? null : remembered.principal(name);
        if (principal == null) return; // who isn't known shares the newcomers' tags
        Client client = clientId == null ? null : principal.client(clientId);
        freed.add(client != null ? client.tags(Tags.PRODUCE) : principal.whole().unknown()[Tags.PRODUCE]);
        if (clientId == null) principal.clients.values().forEach(each -> freed.add(each.tags(Tags.PRODUCE)));
    }
}
