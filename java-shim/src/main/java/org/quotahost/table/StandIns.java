package org.quotahost.table;

import static org.quotahost.table.FactorInForce.FETCH;
import static org.quotahost.table.FactorInForce.PRODUCE;
import static org.quotahost.table.QuotaTable.BEATS_PER_SECOND;

import java.util.ArrayDeque;

/**
 * What clients without a quota use, for the factor to multiply in place of a quota: when it is measured, and that the
 * newcomers' rate stands in until then.
 *
 * <p>A client that was there before the factor fell counts with what it used then, also where the fall was a PAUSE that the
 * fence holds, and so does one that begins later to write to topics for which the factor is. One that comes later is measured
 * when Kafka's windows are full of it, unless its limit holds it back: what it would use isn't known then. Until then, and
 * while it uses less than the floor, the newcomers' rate stands in. Kafka asks nothing of a request that the fence turns back:
 * who comes in a PAUSE begins after it. When limits of those who share the scope are back where they were, it is forgotten,
 * also while other limits are low: until then Kafka's windows have what was sent by lower limits, and if the factor falls
 * again, limits follow at once. All of it is the watch's.
 */
final class StandIns {
    /** The types whose rates are bytes/s. */
    private static final int[] TYPES = {PRODUCE, FETCH};
    /** A client whose rate is this near its limit swings around it, since Kafka measures in samples. */
    private static final double NEAR = 0.9;
    /** How many times what a client uses its stand-in is at most; a factor may be 0. */
    private static final double MOST_ABOVE = 1_000;
    /** A reading takes some microseconds; more than so many in one beat wait for the next one. */
    private static final int MOST_AT_ONCE = 10_000;

    private final Scopes scopes;
    /** Those in use that have none, as of the last fall, and then of each second. */
    private final ArrayDeque<Scope> due = new ArrayDeque<>();
    /** The beat at which those were found. */
    private int dueAt;
    /** The same of the last time that all of them have been looked at: limits go by the stand-ins for falls before it. */
    volatile int lookedAt;
    /** The beat at which scopes were walked through last, once a second. */
    private int walkedAt;
    /** Whose stand-ins are on their way down to what they use. */
    private final ArrayDeque<Late> late = new ArrayDeque<>();
    /** Whether there may be stand-ins. To look through 50,000 scopes for none each second would take a twentieth of a core. */
    private boolean kept;

    /**
     * Who came while the factor was low had no limit of its own until it was measured. Its stand-in goes down by the steps of a tap
     * (Windows.stepShare), each when Kafka has forgotten what was sent before the last one.
     */
    private record Late(Scope scope, int type, double rate, int since) {}

    StandIns(Scopes scopes) {
        this.scopes = scopes;
    }

    /** Measures what can be measured now. Answers whether any scope has another stand-in by that. */
    boolean measure(Rule rule, int now) {
        int fellAt = rule.fellAt();
        boolean low = fellAt != Tags.NEVER, falls = low && fellAt - dueAt >= 0;
        // A beat may be left out.
        boolean second = !falls && now - walkedAt >= BEATS_PER_SECOND;
        if (second) {
            walkedAt = now;
            boolean[] still = {false};
            if (kept) scopes.forEach(scope -> {
                for (int type : TYPES) still[0] |= scope.keepUntilOver(type, rule);
            });
            kept = still[0];
        }
        if (!low) {
            due.clear();
            late.clear();
            return false;
        }
        int since = now - (falls ? rule.backBeats() : BEATS_PER_SECOND);
        if (due.isEmpty() && (falls || second)) {
            dueAt = now;
            scopes.forEach(scope -> {
                if (scope.lacksStandIn(PRODUCE, rule, since) != null || scope.lacksStandIn(FETCH, rule, since) != null) due.add(scope);
            });
        }
        boolean changed = false;
        for (int left = late.size(); second && left > 0; left--) changed |= lower(late.poll(), rule, now);
        for (int left = MOST_AT_ONCE; left > 0 && !due.isEmpty(); left--) changed |= measure(due.poll(), rule, now);
        if (due.isEmpty()) lookedAt = dueAt;
        return changed;
    }

    private boolean measure(Scope scope, Rule rule, int now) {
        int back = Math.max(BEATS_PER_SECOND, rule.backBeats());
        boolean changed = false;
        for (int type : TYPES) {
            Tags tags = scope.lacksStandIn(type, rule, now - back);
            // At the fall nobody is held back yet; nor is later who had other tags until now.
            boolean isLate = tags != null && rule.of(tags, type).measured();
            if (tags == null || isLate && scope.inUse(type, now, back) < back) continue;
            double rate = scope.rate(type);
            Double limit = rule.limit(tags, type);
            boolean isFull = isLate && tags.inUse(type, now) >= back, heldBack = isFull && limit != null && rate >= NEAR * limit;
            if (!(rate >= rule.all()[type].floor()) || heldBack) continue;
            double step = isFull ? rule.windows().stepShare() / rule.of(tags, type).factor() : 1;
            kept = true;
            scope.standIn(type, Math.min(Math.max(1, step), MOST_ABOVE) * rate);
            if (step > 1) late.add(new Late(scope, type, rate, now));
            changed = true;
        }
        return changed;
    }

    private boolean lower(Late each, Rule rule, int now) {
        double before = each.scope.standIn(each.type);
        if (Double.isNaN(before)) return false; // it was forgotten in this second
        if (now - each.since < rule.backBeats()) {
            late.add(each);
            return false;
        }
        double next = Math.max(each.rate, before * rule.windows().stepShare());
        each.scope.standIn(each.type, next);
        if (next > each.rate) late.add(new Late(each.scope, each.type, each.rate, now));
        return true;
    }
}
