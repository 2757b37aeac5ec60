package org.quotahost.table;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.quotahost.internals.ClientMeters;

/**
 * The clients that share one pair of tags, and so one sensor of Kafka's and one limit for each quota type; and those of
 * them that have slowed tags while a factor is for those who write to affected topics.
 *
 * <p>Request threads read it. The table writes its rates under its lock and then replaces the rule, by which every limit
 * is made anew.
 */
final class Scope {
    final Tags own;
    final boolean exempt;
    /** Made by the first request of a slowed client; equal ones that two threads make at once do no harm. */
    private volatile Tags slowed;
    /** Base rates by quota type, NaN for unlimited; replaced as a whole. */
    private volatile double[] base = unknown();
    /** What clients without a quota used when the factor fell, by quota type, NaN where nothing was measured; or null. */
    private volatile double[] standIn;

    /** Whether it was handed to StandIns since the factor fell. */
    volatile boolean asksForStandIn;

    private ClientMeters.Reading[] readings;
    private long[] readAt;

    Scope(String user, String clientId, boolean exempt) {
        own = new Tags(this, user, clientId, false);
        this.exempt = exempt;
    }

    private static double[] unknown() {
        double[] rates = new double[QuotaTable.TYPES];
        Arrays.fill(rates, Double.NaN);
        return rates;
    }

    /** The name of the user whose scope it is; Kafka has it percent-encoded. */
    String principal() {
        return URLDecoder.decode(own.user, StandardCharsets.UTF_8);
    }

    double base(int type) {
        return base[type];
    }

    /** Sets the base rate of a type. Answers whether it is another one. */
    boolean base(int type, double rate) {
        if (Double.compare(base[type], rate) == 0) return false;
        double[] next = base.clone();
        next[type] = rate;
        base = next;
        return true;
    }

    /** NaN if none was measured. */
    double standIn(int type) {
        double[] now = standIn;
        return now == null ? Double.NaN : now[type];
    }

    void standIn(int type, double rate) {
        double[] next = standIn == null ? unknown() : standIn.clone();
        next[type] = rate;
        standIn = next;
    }

    /** The factor is 1 again: when it falls, it is measured anew. */
    void forgetStandIns() {
        standIn = null;
    }

    /** The tags of those who write to affected topics. */
    Tags slowed() {
        Tags made = slowed;
        if (made == null) slowed = made = makeSlowed();
        return made;
    }

    /** The same to look at: nobody has them by that, so that Kafka has no sensor for them either. */
    Tags slowedToShow() {
        Tags made = slowed;
        return made == null ? makeSlowed() : made;
    }

    private Tags makeSlowed() {
        return new Tags(this, Tags.slowedUser(own.user), own.clientId, true);
    }

    /** For how many beats somebody has been in the scope, with no pause as long as Kafka looks back. */
    int inUse(int now, int back) {
        int longest = 0;
        for (Tags each : new Tags[] {own, slowed}) {
            if (each != null && now - each.use.seen() < back) longest = Math.max(longest, each.use.inUse(now));
        }
        return longest;
    }

    /** What Kafka measures for the scope, its slowed tags too, in the type's unit; NaN for nothing. It reads MBeans. */
    double rate(int type) {
        double rate = ClientMeters.rate(type, own.user, own.clientId);
        Tags other = slowed;
        double more = other == null ? Double.NaN : ClientMeters.rate(type, other.user, other.clientId);
        return Double.isNaN(more) ? rate : Double.isNaN(rate) ? more : rate + more;
    }

    // ---- what Kafka measures; for Dump, under its lock -------------------------------------------------------

    /** The reading of a type that was taken last, of the own tags or of the slowed ones. */
    ClientMeters.Reading reading(int type, boolean ofSlowed) {
        return readings == null ? ClientMeters.Reading.NOTHING : readings[ofSlowed ? type + QuotaTable.TYPES : type];
    }

    /** When that was, by System.nanoTime; 0 for never. */
    long readAt(int type) {
        return readings == null ? 0 : readAt[type];
    }

    void read(int type, long nanos) {
        if (readings == null) {
            readings = new ClientMeters.Reading[2 * QuotaTable.TYPES];
            Arrays.fill(readings, ClientMeters.Reading.NOTHING);
            readAt = new long[QuotaTable.TYPES];
        }
        Tags other = slowed;
        readings[type] = ClientMeters.read(type, own.user, own.clientId);
        if (other != null) readings[type + QuotaTable.TYPES] = ClientMeters.read(type, other.user, other.clientId);
        readAt[type] = nanos;
    }

    /** Whether Kafka may have a sensor for the own tags or the slowed ones. */
    boolean wasHad() {
        return own.use.wasHad() || slowed != null;
    }

    /** The beat at which somebody was in the scope last. */
    int seen() {
        Tags other = slowed;
        return other == null ? own.use.seen() : Math.max(own.use.seen(), other.use.seen());
    }

    /** A mark has ended: who had the slowed tags has the scope's own ones again. */
    void markEnded(int now, Rule rule) {
        Tags other = slowed;
        if (other == null) return;
        other.use.leave(now);
        own.use.comeBack(now, rule);
    }
}
