package org.quotahost.table;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.Escape;

/**
 * What the table holds for one client and quota type, as one line for operators.
 *
 * <p>Tab-separated (Escape): type, user tag, client-id tag, base rate (NaN is unlimited), limit (null is unlimited),
 * "known" or "newcomer"; then the supplier that gave it (or failed, for a newcomer; or why it is exempt; empty for
 * nobody; with supplier.combine=most-constraining, behind tabs, NAME=RATE of each other one that had an answer),
 * exempt, the stand-in (NaN if none is in use), floored, whether the stand-in is "measured" or the
 * "newcomers'" rate, whether a supplier has failed for this client of late, and what Kafka measures for the scope
 * now: its rate and its delay in ms, NaN where it has measured none.
 */
record Description(ClientQuotaType type, Tags tags, double base, Double limit, boolean newcomer, String supplier, boolean exempt,
        double stand, boolean standMeasured, boolean floored, boolean failed) {

    /** Under the table's lock; client is null for one that isn't in the table. */
    static Description of(ClientQuotaType type, Client client, Tags tags, boolean newcomer, LimitRule rule) {
        int at = type.ordinal();
        double base = tags.base(at);
        double stand = tags.stand(at);
        boolean exempt = tags.exempt(at);
        boolean standsIn = rule.standsIn(at, base, exempt);
        return new Description(type, tags, base, tags.limit(at), newcomer, client == null ? "" : client.sources[at], exempt,
                standsIn ? stand : Double.NaN, tags.standMeasured(at), rule.floored(at, base, stand, exempt),
                client != null && client.unresolved);
    }

    /** FenceFixture Kafka's MBeans: not under the lock. */
    String line() {
        double[] measured = KafkaRates.now(type, tags);
        return Escape.fields(type.name(), tags.user, tags.clientId, base, limit, newcomer ? "newcomer" : "known", supplier, exempt,
                stand, floored, Double.isNaN(stand) ? "" : standMeasured ? "measured" : "newcomers", failed, measured[0], measured[1]);
    }
}
