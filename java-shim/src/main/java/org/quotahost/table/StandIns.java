package org.quotahost.table;

import static org.quotahost.table.QuotaTable.BEATS_PER_SECOND;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * What clients without a quota use, for the factor to multiply in place of a quota.
 *
 * <p>A scope's stand-in is measured once its limit is asked for under a factor: Kafka asks for all of them when the factor
 * falls, and for a client that comes later as it comes. Until then, and while it uses less than the floor, the newcomers'
 * rate stands in. A client that was there before the fall counts with what it used then. One that comes later is measured
 * when Kafka's windows are full of it, unless its limit holds it back: what it would use isn't known then. When the factor
 * is 1 again, all is forgotten.
 *
 * <p>A request thread adds a scope once; all else is the watch's.
 */
final class StandIns {
    /** The types whose rates are bytes/s. */
    private static final int[] TYPES = {ClientQuotaType.PRODUCE.ordinal(), ClientQuotaType.FETCH.ordinal()};
    /** A client whose rate is this near its limit swings around it, since Kafka measures in samples. */
    private static final double NEAR = 0.9;
    /** A reading takes some microseconds; more than so many in one beat wait for the next one. */
    private static final int MOST_AT_ONCE = 10_000;

    private final Scopes scopes;
    private final Queue<Scope> asked = new ConcurrentLinkedQueue<>();
    /** Whether some factor is below 1, and the beat at which it fell; with none below 1, this one. */
    private boolean began;
    private int beganAt;

    StandIns(Scopes scopes) {
        this.scopes = scopes;
    }

    /** On a request thread: a limit is made for a scope without a quota. */
    void ask(Scope scope) {
        if (scope.asksForStandIn) return;
        scope.asksForStandIn = true;
        asked.add(scope);
    }

    /** Measures what can be measured now. Answers whether any scope has another stand-in by that. */
    boolean measure(Rule rule, int now) {
        if (!rule.usesStandIns()) {
            beganAt = now;
            for (Scope scope; (scope = asked.poll()) != null;) scope.forgetStandIns();
            if (began) scopes.forEach(Scope::forgetStandIns);
            began = false;
            return false;
        }
        began = true;
        boolean changed = false;
        Scope scope;
        for (int left = MOST_AT_ONCE; left > 0 && (scope = asked.poll()) != null; left--) {
            changed |= measure(scope, rule, now);
        }
        if (now % BEATS_PER_SECOND == 0 && asked.isEmpty()) scopes.forEach(each -> askAgain(each, rule, now));
        return changed;
    }

    /** One that could not be measured has its turn again with each second in which it is in use. */
    private void askAgain(Scope scope, Rule rule, int now) {
        if (!scope.asksForStandIn || now - scope.seen() > BEATS_PER_SECOND) return;
        if (isMissing(scope, rule, TYPES[0]) || isMissing(scope, rule, TYPES[1])) asked.add(scope);
    }

    private static boolean isMissing(Scope scope, Rule rule, int type) {
        return rule.factors(type) && Double.isNaN(scope.base(type)) && Double.isNaN(scope.standIn(type));
    }

    private boolean measure(Scope scope, Rule rule, int now) {
        int back = Math.max(BEATS_PER_SECOND, rule.backBeats());
        int used = scope.inUse(now, back);
        boolean wasThere = used >= now - beganAt;
        if (!wasThere && used < back) return false;
        boolean changed = false;
        for (int type : TYPES) {
            if (!isMissing(scope, rule, type)) continue;
            double rate = scope.rate(type);
            Double limit = rule.limit(scope.own, type);
            boolean heldBack = !wasThere && limit != null && rate >= NEAR * limit;
            if (!(rate >= rule.all()[type].floor()) || heldBack) continue;
            scope.standIn(type, rate);
            changed = true;
        }
        return changed;
    }
}
