package org.quotahost.table;

import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.table.QuotaTable.SlowedTopics;

/**
 * The clients that share one pair of tags, and so one sensor of Kafka's and one limit for each quota type; while a factor is
 * only for clients that write to affected topics, the marked clients of a scope have slowed tags.
 *
 * <p>Base rates are written under the table's lock, stand-ins only by the watch. After such a change the rule is replaced,
 * which makes every limit anew. Request threads read the scope.
 */
final class Scope {
    private static final double[] UNKNOWN = new double[QuotaTable.TYPES];

    static {
        Arrays.fill(UNKNOWN, Double.NaN);
    }

    final Scopes scopes;
    final Tags own;
    /** By group; made at the first request for them. */
    private final ConcurrentHashMap<String, Tags> slowed = new ConcurrentHashMap<>(2);
    /** Base rates by quota type, NaN for unlimited; replaced as a whole. */
    private volatile double[] base = UNKNOWN;
    /** The usage of clients without a quota when the factor fell, by quota type; NaN if nothing was measured. */
    private volatile double[] standIn = UNKNOWN;

    Scope(Scopes scopes, String user, String clientId) {
        this.scopes = scopes;
        own = new Tags(this, user, clientId, null);
    }

    boolean isExempt() {
        return this == scopes.exempt;
    }

    double base(int type) {
        return base[type];
    }

    /** Sets a base rate. Returns whether the rate has changed. */
    boolean base(int type, double rate) {
        if (Double.compare(base[type], rate) == 0) return false;
        base = with(base, type, rate);
        return true;
    }

    double standIn(int type) {
        return standIn[type];
    }

    void standIn(int type, double rate) {
        standIn = with(standIn, type, rate);
    }

    private static double[] with(double[] rates, int type, double rate) {
        double[] next = rates.clone();
        next[type] = rate;
        return next;
    }

    /**
     * Forgets the stand-in if the limits of all tags are as before the fall; the next fall measures it anew. Slowed tags do not
     * count if their last use is older than all that Kafka has of the own tags, or, when their group is slowed no longer, than
     * all that Kafka has. Returns whether the stand-in is kept.
     */
    boolean keepUntilOver(int type, Rule rule, int now) {
        if (Double.isNaN(standIn[type])) return false;
        boolean over = rule.isOver(own, type) && slowed.values().stream().allMatch(tags -> rule.slows(tags)
                ? rule.isOver(tags, type) || own.seen(type) - tags.seen(type) >= rule.backBeats()
                : now - tags.seen(type) >= rule.backBeats());
        if (over) standIn(type, Double.NaN);
        return !over;
    }

    /** Returns the tags in use since a beat that need a (new) stand-in, those with the latest fall; null if there are none. */
    Tags lacksStandIn(int type, Rule rule, int since) {
        Tags last = own.seen(type) - since >= 0 && rule.usesStandIn(own, type) ? own : null;
        for (Tags tags : slowed.values()) {
            boolean lacks = tags.seen(type) - since >= 0 && rule.usesStandIn(tags, type);
            if (lacks && (last == null || rule.of(tags, type).fellAt() > rule.of(last, type).fellAt())) last = tags;
        }
        return last == null || Double.isNaN(standIn[type]) || !rule.of(last, type).measured() ? last : null;
    }

    Tags slowed(String group) {
        Tags made = slowed.get(group);
        if (made != null) return made;
        return slowed.computeIfAbsent(group,
                any -> scopes.add(new Tags(this, Tags.slowedUser(own.user, group), own.clientId, group)));
    }

    /** Forgets the slowed tags that no client has had since a beat, since budgets come and go. */
    void forgetSlowed(int before) {
        slowed.values().removeIf(tags -> {
            boolean goes = tags.seen() - before < 0;
            if (goes) scopes.remove(tags);
            return goes;
        });
    }

    /** Returns the last used slowed tags of this rule's groups, or the own tags if the rule slows no group that is known here. */
    Tags slowedLast(Rule rule) {
        if (rule.slowed().containsKey(SlowedTopics.VOLUMES)) slowed(SlowedTopics.VOLUMES);
        Tags last = own;
        for (Tags tags : slowed.values()) {
            if (rule.slows(tags) && (last == own || tags.seen() > last.seen())) last = tags;
        }
        return last;
    }

    /** Returns for how many beats the scope has been in use without a pause as long as Kafka looks back. */
    int inUse(int type, int now, int back) {
        int longest = now - own.seen(type) < back ? own.inUse(type, now) : 0;
        for (Tags tags : slowed.values()) if (now - tags.seen(type) < back) longest = Math.max(longest, tags.inUse(type, now));
        return longest;
    }

    /** Returns Kafka's measurements of a type for the own tags, or for all slowed tags together. This reads MBeans. */
    KafkaBeans.Reading read(int type, boolean ofSlowed) {
        if (!ofSlowed) return KafkaBeans.read(type, own.user, own.clientId);
        KafkaBeans.Reading all = KafkaBeans.Reading.NOTHING;
        for (Tags tags : slowed.values()) all = all.and(KafkaBeans.read(type, tags.user, tags.clientId));
        return all;
    }

    /** Returns the same for all tags together. This reads MBeans. */
    KafkaBeans.Reading read(int type) {
        return read(type, false).and(read(type, true));
    }

    /** Returns whether Kafka may have a sensor for the own tags or the slowed ones. */
    boolean wasHad() {
        return own.wasHad() || slowed.values().stream().anyMatch(Tags::wasHad);
    }

    int seen() {
        int last = own.seen();
        for (Tags tags : slowed.values()) last = Math.max(last, tags.seen());
        return last;
    }

    /** Notes that a mark has ended: its client has the scope's own tags again. */
    void markEnded(int now) {
        if (slowed.values().stream().noneMatch(Tags::wasHad)) return;
        for (Tags tags : slowed.values()) tags.left = now;
        own.left = now;
    }
}
