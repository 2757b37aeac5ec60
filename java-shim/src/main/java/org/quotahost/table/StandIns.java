package org.quotahost.table;

import static org.quotahost.table.FactorInForce.FETCH;
import static org.quotahost.table.FactorInForce.PRODUCE;
import static org.quotahost.table.QuotaTable.BEATS_PER_SECOND;

import java.util.ArrayDeque;
import org.quotahost.internals.KafkaBeans.Reading;

/**
 * The stand-ins: the measured usage of clients without a quota, which a factor multiplies in place of a quota; the watch
 * measures them; until then the newcomers' rate is used.
 *
 * <p>If a client was there before the factor fell, its stand-in is its usage at that time, also if the fall was a PAUSE that
 * the fence holds, or if the client begins to write to affected topics later. A client that comes later is measured when it has
 * filled Kafka's windows, unless its limit has delayed it lately: then nobody knows what it would use. Until then, and while it
 * uses less than the floor, the newcomers' rate is used. Kafka asks for no tags for a request that the fence turns back, so a
 * client that comes in a PAUSE begins after the PAUSE. The stand-in is dropped when the limits of its scope are back where they
 * were, even if other limits are low. Until then Kafka's windows contain what was sent with lower limits. If the factor falls
 * again before that, usage counts if it is above the stand-in: nothing limited the client in between.
 */
final class StandIns {
    /** The types whose rates are bytes/s. */
    private static final int[] TYPES = {PRODUCE, FETCH};
    /** A client whose rate is this near to its limit swings around the limit, since Kafka measures in samples. */
    private static final double NEAR = 0.9;
    /** The largest ratio of a stand-in to the measured usage; a factor may be 0. */
    private static final double MOST_ABOVE = 1_000;
    /** A reading takes some microseconds. If there are more in one beat, the rest waits for the next beat. */
    private static final int MOST_AT_ONCE = 10_000;

    private final Scopes scopes;
    /** The scopes in use without a stand-in, found at the last fall, and then once a second. */
    private final ArrayDeque<Scope> due = new ArrayDeque<>();
    /** The beat at which the due scopes were found. */
    private int dueAt;
    /** The value of dueAt when due was last empty: limits use the stand-ins for falls before this beat. */
    volatile int lookedAt;
    /** The beat of the last walk through the scopes, which takes place once a second. */
    private int walkedAt;
    /** The stand-ins that are moving down to the measured usage. */
    private final ArrayDeque<Late> late = new ArrayDeque<>();
    /** Whether there may be stand-ins. A walk through 50,000 scopes each second without any would waste a twentieth of a core. */
    private boolean kept;

    /**
     * A client had no limit of its own until it was measured, while limits were low or still rising. Its stand-in goes down to a
     * rate in the steps of a tap (Windows.stepShare), each when Kafka has forgotten what was sent before the previous step. It
     * waits while the factor is 1 for a moment, and a step is smaller if the factor has fallen since the previous one.
     *
     * @param highest the highest factor since the previous step
     */
    private record Late(Tags tags, int type, double rate, int since, double standIn, double highest) {}

    StandIns(Scopes scopes) {
        this.scopes = scopes;
    }

    /** Measures what can be measured now. Returns a bit for each quota type of which a scope has got another stand-in. */
    int measure(Rule rule, int now) {
        int fellAt = rule.fellAt(), changed = 0;
        boolean low = fellAt != Tags.NEVER, falls = low && fellAt - dueAt >= 0;
        // The watch may skip a beat.
        boolean second = !falls && now - walkedAt >= BEATS_PER_SECOND;
        if (second) {
            walkedAt = now;
            boolean[] still = {false};
            if (kept) scopes.forEach(scope -> {
                for (int type : TYPES) still[0] |= scope.keepUntilOver(type, rule, now);
            });
            kept = still[0];
            for (int left = late.size(); left > 0; left--) changed |= lower(late.poll(), rule, low, now);
        }
        if (!low) {
            due.clear();
            return changed;
        }
        int since = now - (falls ? rule.backBeats() : BEATS_PER_SECOND);
        if (due.isEmpty() && (falls || second)) {
            dueAt = now;
            scopes.forEach(scope -> {
                if (scope.lacksStandIn(PRODUCE, rule, since) != null || scope.lacksStandIn(FETCH, rule, since) != null) due.add(scope);
            });
        }
        for (int left = MOST_AT_ONCE; left > 0 && !due.isEmpty(); left--) {
            Scope scope = due.poll();
            for (int type : TYPES) changed |= measure(scope, type, rule, now);
        }
        if (due.isEmpty()) lookedAt = dueAt;
        return changed;
    }

    private int measure(Scope scope, int type, Rule rule, int now) {
        int back = Math.max(BEATS_PER_SECOND, rule.backBeats());
        Tags tags = scope.lacksStandIn(type, rule, now - back);
        if (tags == null) return 0;
        int inUse = Math.min(back, scope.inUse(type, now, back));
        boolean isLate = rule.of(tags, type).measured();
        if (isLate && inUse < back) return 0;
        // Otherwise the windows contain what the client sent with the tags that it had before.
        boolean isFull = isLate && tags.inUse(type, now) >= back;
        Reading read = scope.read(type);
        // Kafka divides what a client sent that began just before a fall by all windows.
        double rate = read.rate() * back / Math.max(BEATS_PER_SECOND, inUse);
        if (!(rate >= rule.all()[type].floor())) return 0; // also if there is no rate
        Double limit = rule.limit(isFull ? tags : scope.own, type);
        boolean limited = limit != null || isLate && !isFull && tags == scope.own; // this one had slowed tags before
        // The rate alone does not tell: it is low after a mute, and while a limit rises.
        if (limited && (read.delayMs() > 0 || isFull && rate >= NEAR * limit)) return 0;
        double factor = rule.of(tags, type).factor();
        double before = scope.standIn(type), aim = before > rate ? before : rate; // before may be NaN
        // The limit of slowed tags rises by itself when a client gets them late.
        double above = isLate && !isFull ? 1 : Math.min(rule.windows().stepShare() / factor, MOST_ABOVE);
        double first = Math.max(aim, above * rate);
        kept = true;
        scope.standIn(type, first);
        if (first > aim) late.add(new Late(tags, type, aim, now, first, factor));
        return 1 << type;
    }

    private int lower(Late each, Rule rule, boolean low, int now) {
        Scope scope = each.tags.scope;
        if (scope.standIn(each.type) != each.standIn) return 0; // it was forgotten, or measured anew
        double factor = rule.of(each.tags, each.type).factor();
        double highest = Math.max(each.highest, factor);
        int since = low ? each.since : now;
        if (now - since < rule.backBeats()) {
            late.add(new Late(each.tags, each.type, each.rate, since, each.standIn, highest));
            return 0;
        }
        double share = rule.windows().stepShare(), step = highest > factor ? Math.min(1, share * highest / factor) : share;
        double next = Math.max(each.rate, each.standIn * step);
        scope.standIn(each.type, next);
        if (next > each.rate) late.add(new Late(each.tags, each.type, each.rate, now, next, factor));
        return 1 << each.type;
    }
}
