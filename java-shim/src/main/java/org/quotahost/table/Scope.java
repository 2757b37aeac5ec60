package org.quotahost.table;

import java.util.Arrays;
import org.quotahost.internals.KafkaBeans;

/**
 * The clients that share one pair of tags, and so one sensor of Kafka's and one limit for each quota type; and those of
 * them that have slowed tags while a factor is for those who write to affected topics.
 *
 * <p>The table writes its rates under its lock and then replaces the rule, by which every limit is made anew. Request
 * threads read it.
 */
final class Scope {
    private static final double[] UNKNOWN = new double[QuotaTable.TYPES];

    static {
        Arrays.fill(UNKNOWN, Double.NaN);
    }

    final Tags own;
    final boolean exempt;
    /** Made when it is asked for first; equal ones that two threads make at once do no harm. */
    private volatile Tags slowed;
    /** Base rates by quota type, NaN for unlimited; replaced as a whole. */
    private volatile double[] base = UNKNOWN;
    /** What clients without a quota used when the factor fell, by quota type, NaN where nothing was measured. */
    private volatile double[] standIn = UNKNOWN;
    /** Whether StandIns has the scope since the factor fell. */
    volatile boolean asksForStandIn;

    Scope(String user, String clientId, boolean exempt) {
        own = new Tags(this, user, clientId, false);
        this.exempt = exempt;
    }

    private static double[] with(double[] rates, int type, double rate) {
        double[] next = rates.clone();
        next[type] = rate;
        return next;
    }

    double base(int type) {
        return base[type];
    }

    /** Sets the base rate of a type. Answers whether it is another one. */
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

    /** The factor is 1 again: when it falls, it is measured anew. */
    void forgetStandIns() {
        standIn = UNKNOWN;
        asksForStandIn = false;
    }

    /** The tags of those who write to affected topics. */
    Tags slowed() {
        Tags made = slowed;
        if (made == null) slowed = made = new Tags(this, Tags.slowedUser(own.user), own.clientId, true);
        return made;
    }

    /** For how many beats somebody has been in the scope, with no pause as long as Kafka looks back. */
    int inUse(int now, int back) {
        int longest = 0;
        for (Tags tags : new Tags[] {own, slowed}) {
            if (tags != null && now - tags.seen() < back) longest = Math.max(longest, tags.inUse(now));
        }
        return longest;
    }

    /** What Kafka measures of a type by the own tags or by the slowed ones. It reads MBeans. */
    KafkaBeans.Reading read(int type, boolean ofSlowed) {
        Tags tags = ofSlowed ? slowed : own;
        return tags == null ? KafkaBeans.Reading.NOTHING : KafkaBeans.read(type, tags.user, tags.clientId);
    }

    /** What Kafka measures for the scope, its slowed tags too, in the type's unit; NaN for nothing. It reads MBeans. */
    double rate(int type) {
        return sum(read(type, false).rate(), read(type, true).rate());
    }

    /** NaN is nothing measured. */
    static double sum(double rate, double more) {
        return Double.isNaN(more) ? rate : Double.isNaN(rate) ? more : rate + more;
    }

    /** Whether Kafka may have a sensor for the own tags or the slowed ones. */
    boolean wasHad() {
        return own.wasHad() || slowed != null && slowed.wasHad();
    }

    /** The beat at which somebody was in the scope last. */
    int seen() {
        return slowed == null ? own.seen() : Math.max(own.seen(), slowed.seen());
    }

    /** A mark has ended: who had the slowed tags has the scope's own ones again. */
    void markEnded(int now, Rule rule) {
        if (slowed == null || !slowed.wasHad()) return;
        slowed.leave(now);
        own.comeBack(now, rule);
    }
}
