package org.quotahost.table;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.Escape;

/**
 * The quota table's state for one client and quota type, as one line for operators (quotahost explain).
 *
 * <p>The line is tab-separated (Escape). Its fields are: the type; the user tag; the client-id tag; the base rate
 * (NaN for unlimited); the limit (null for unlimited); "known" or "newcomer"; the supplier; whether the client is
 * exempt; the stand-in (NaN if none is in use); whether the limit is the floor; whether the stand-in is "measured" or
 * the "newcomers'" rate; whether a supplier has failed for this client; and what Kafka measures for the scope now,
 * its rate, its delay in ms and the tokens left for partition mutations, NaN if it has measured none; and, if the client
 * is slowed because it writes to an affected topic, that topic and where it lies, else two empty fields. Tags and limit
 * are then the twin's. Then comes by what it is held back now (Bound), and last what rules in shadow would do (Shadow).
 *
 * <p>The supplier is the one that gave the quota, or failed if the client is a newcomer, or the reason for which the
 * client is exempt; empty for none of these. With supplier.combine=most-constraining, NAME=RATE of each other
 * supplier that had an answer follow it, behind tabs of their own.
 */
record Description(ClientQuotaType type, Tags tags, double base, Double limit, boolean newcomer, String supplier,
        boolean exempt, double standIn, boolean standInMeasured, boolean floored, boolean failed, Mark mark,
        Shadow shadow, Bound turnedBack) {

    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();

    /** Why a client is slowed while others are not: the affected topic that it writes to, and where that lies. */
    record Mark(String topic, String place) {
        static final Mark NONE = new Mark("", "");
        /** Of some in a scope. */
        static final Mark SOME = new Mark("", "");

        static Mark of(String topic, Affected affected) {
            return topic == null || affected == null ? NONE : new Mark(topic, affected.place(topic));
        }
    }

    /**
     * What rules in shadow would do for the client: the supplier that would give its quota, "" for none; the two values of
     * the tags of the scope that would share it; its base rate; the limit that Kafka would have; the rate that is measured
     * of that scope, NaN if it can't be told; and the limit that the factor would make of the quota in force ("" if the
     * factor is not in shadow, or not for this client). Limits are "null" for unlimited.
     */
    record Shadow(String supplier, WouldBe.Scope scope, double base, Double limit, double rate, String factorLimit) {
        /** Nothing is told of it. */
        static final Shadow NONE = new Shadow("", new WouldBe.Scope("", ""), Double.NaN, null, Double.NaN, "");
    }

    /**
     * Under the table's lock.
     *
     * @param principal null if it is not in the table
     * @param client null if it is not in the table
     * @param exempt whether the client is exempt even if the table doesn't know it
     * @param turnedBack what turns its produce requests back (Bound.turnsBack)
     */
    static Description of(int type, Principal principal, Client client, String clientId, boolean exempt,
            Scopes scopes, Mark mark, Shadows shadows, Bound turnedBack) {
        Whole whole = principal == null ? null : principal.whole();
        boolean shares = shares(type, whole, client, clientId, exempt, scopes);
        Tags tags = tags(type, whole, client, clientId, exempt, scopes);
        String supplier = client != null ? client.suppliers[type] : shares ? whole.suppliers()[type] : "";
        boolean newcomer = client == null && !shares && !exempt || Scopes.isOfNewcomers(tags);
        boolean failed = client != null ? client.unresolved : shares && principal.unresolved;
        LimitRule rule = scopes.rule();
        boolean slowed = mark != Mark.NONE && tags != scopes.exempt && rule.factors(type) && rule.slowed() != null;
        WouldBe[] would = client != null ? client.would : shares ? principal.would : null;
        Shadow shadow = shadows.of(type, tags, would, principal == null ? "" : principal.user, clientId, mark != Mark.NONE);
        return of(type, tags, newcomer, supplier, failed, slowed ? rule.slowed() : rule, slowed ? mark : Mark.NONE,
                shadow, turnedBack);
    }

    /** Whether a client has what holds for its principal whatever the client-id. */
    private static boolean shares(int type, Whole whole, Client client, String clientId, boolean exempt, Scopes scopes) {
        return whole != null && whole.tags()[type] != null && client == null
                && !(exempt && whole.tags()[type] != scopes.exempt) && !whole.distinct().contains(clientId);
    }

    /** The tags of a client's scope, as LookUp finds them. The parameters are those of of(). */
    static Tags tags(int type, Whole whole, Client client, String clientId, boolean exempt, Scopes scopes) {
        if (client != null) return client.tags(type);
        if (shares(type, whole, null, clientId, exempt, scopes)) return whole.tags()[type];
        return exempt ? scopes.exempt : whole != null ? whole.unknown()[type] : scopes.newcomers;
    }

    /**
     * Of the clients of one scope; under the table's lock.
     *
     * @param slowed whether it is about those who write to affected topics
     */
    static Description of(int type, Tags tags, LimitRule rule, boolean slowed, Bound turnedBack) {
        boolean twin = slowed && rule.slowed() != null;
        return of(type, tags, Scopes.isOfNewcomers(tags), "", false, twin ? rule.slowed() : rule,
                twin ? Mark.SOME : Mark.NONE, Shadow.NONE, turnedBack);
    }

    private static Description of(int at, Tags tags, boolean newcomer, String supplier, boolean failed,
            LimitRule rule, Mark mark, Shadow shadow, Bound turnedBack) {
        double base = tags.base(at);
        double standIn = tags.standIn(at);
        boolean exempt = tags.exempt(at);
        boolean usesStandIn = rule.usesStandIn(at, base, exempt);
        Double limit = mark == Mark.NONE ? tags.limit(at) : tags.slowedLimit(at);
        return new Description(TYPES[at], tags, base, limit, newcomer, supplier, exempt,
                usesStandIn ? standIn : Double.NaN, tags.standInMeasured(at), rule.floored(at, base, standIn, exempt),
                failed, mark, shadow, at == Tags.PRODUCE ? turnedBack : Bound.NOTHING);
    }

    /** By what the client is held back now. */
    Bound bound(KafkaRates.Reading now) {
        return turnedBack != Bound.NOTHING ? turnedBack : Bound.limits(this, now);
    }

    /** Reads Kafka's MBeans, so the caller must not have the table's lock. */
    String line() {
        String standInKind = Double.isNaN(standIn) ? "" : standInMeasured ? "measured" : "newcomers";
        String user = mark == Mark.NONE ? tags.user : Twin.user(tags.user);
        KafkaRates.Reading now = KafkaRates.read(type, tags);
        return Escape.fields(type.name(), user, tags.clientId, base, limit, newcomer ? "newcomer" : "known",
                supplier, exempt, standIn, floored, standInKind, failed, now.rate(), now.delayMs(), now.tokens(),
                mark.topic, mark.place, bound(now).word(), shadow.supplier, shadow.scope.user(), shadow.scope.clientId(),
                shadow.base, shadow.limit, shadow.rate, shadow.factorLimit);
    }
}
