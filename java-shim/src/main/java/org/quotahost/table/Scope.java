package org.quotahost.table;

import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.table.QuotaTable.SlowedTopics;

/**
 * The clients that share one pair of tags, and so one sensor of Kafka's and one limit for each quota type; and those of
 * them that have slowed tags while a factor is for those who write to affected topics.
 *
 * <p>Its base rates are written under the table's lock, its stand-ins by the watch alone; then the rule is replaced, by
 * which every limit is made anew. Request threads read it.
 */
final class Scope {
    private static final double[] UNKNOWN = new double[QuotaTable.TYPES];

    static {
        Arrays.fill(UNKNOWN, Double.NaN);
    }

    final Scopes scopes;
    final Tags own;
    /** By group, made when they are asked for first. */
    private final ConcurrentHashMap<String, Tags> slowed = new ConcurrentHashMap<>(2);
    /** Base rates by quota type, NaN for unlimited; replaced as a whole. */
    private volatile double[] base = UNKNOWN;
    /** What clients without a quota used when the factor fell, by quota type, NaN where nothing was measured. */
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

    /** Answers whether it is another one. */
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
     * Forgets it when limits of all tags are as before the fall, but for slowed ones that were last in use before all that Kafka
     * has of the own ones: at the next one it is measured anew. Answers whether it is kept.
     */
    boolean keepUntilOver(int type, Rule rule) {
        if (Double.isNaN(standIn[type])) return false;
        boolean over = rule.isOver(own, type) && slowed.values().stream()
                .allMatch(tags -> rule.isOver(tags, type) || own.seen(type) - tags.seen(type) >= rule.backBeats());
        if (over) standIn(type, Double.NaN);
        return !over;
    }

    /** The tags that somebody has had since a beat and whose limit lacks one, with the last fall; null for none. */
    Tags lacksStandIn(int type, Rule rule, int since) {
        if (!Double.isNaN(standIn[type])) return null;
        Tags last = own.seen(type) - since >= 0 && rule.usesStandIn(own, type) ? own : null;
        for (Tags tags : slowed.values()) {
            boolean lacks = tags.seen(type) - since >= 0 && rule.usesStandIn(tags, type);
            if (lacks && (last == null || rule.of(tags, type).fellAt() > rule.of(last, type).fellAt())) last = tags;
        }
        return last;
    }

    Tags slowed(String group) {
        Tags made = slowed.get(group);
        if (made != null) return made;
        return slowed.computeIfAbsent(group,
                any -> scopes.add(new Tags(this, Tags.slowedUser(own.user, group), own.clientId, group)));
    }

    /** Forgets the slowed tags that nobody had since a beat: budgets come and go. */
    void forgetSlowed(int before) {
        slowed.values().removeIf(tags -> {
            boolean goes = tags.seen() - before < 0;
            if (goes) scopes.remove(tags);
            return goes;
        });
    }

    /** The slowed tags of a group of this rule that somebody had last; the own ones if it slows no group that is known here. */
    Tags slowedLast(Rule rule) {
        if (rule.slowed().containsKey(SlowedTopics.VOLUMES)) slowed(SlowedTopics.VOLUMES);
        Tags last = own;
        for (Tags tags : slowed.values()) {
            if (rule.slows(tags) && (last == own || tags.seen() > last.seen())) last = tags;
        }
        return last;
    }

    /** For how many beats somebody has been in the scope, with no pause as long as Kafka looks back. */
    int inUse(int type, int now, int back) {
        int longest = now - own.seen(type) < back ? own.inUse(type, now) : 0;
        for (Tags tags : slowed.values()) if (now - tags.seen(type) < back) longest = Math.max(longest, tags.inUse(type, now));
        return longest;
    }

    /** What Kafka measures of a type by the own tags, or by all slowed ones together. It reads MBeans. */
    KafkaBeans.Reading read(int type, boolean ofSlowed) {
        if (!ofSlowed) return KafkaBeans.read(type, own.user, own.clientId);
        KafkaBeans.Reading all = KafkaBeans.Reading.NOTHING;
        for (Tags tags : slowed.values()) all = all.and(KafkaBeans.read(type, tags.user, tags.clientId));
        return all;
    }

    /** What Kafka measures for the scope, its slowed tags too, in the type's unit; NaN for nothing. It reads MBeans. */
    double rate(int type) {
        return read(type, false).and(read(type, true)).rate();
    }

    /** Whether Kafka may have a sensor for the own tags or the slowed ones. */
    boolean wasHad() {
        return own.wasHad() || slowed.values().stream().anyMatch(Tags::wasHad);
    }

    int seen() {
        int last = own.seen();
        for (Tags tags : slowed.values()) last = Math.max(last, tags.seen());
        return last;
    }

    /** A mark has ended: who had the slowed tags has the scope's own ones again. */
    void markEnded(int now) {
        if (slowed.values().stream().noneMatch(Tags::wasHad)) return;
        for (Tags tags : slowed.values()) tags.leave(now);
        own.leave(now);
    }
}
