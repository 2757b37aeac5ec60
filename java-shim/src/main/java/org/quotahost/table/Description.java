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
 * its rate and its delay in ms, NaN if it has measured none.
 *
 * <p>The supplier is the one that gave the quota, or failed if the client is a newcomer, or the reason for which the
 * client is exempt; empty for none of these. With supplier.combine=most-constraining, NAME=RATE of each other
 * supplier that had an answer follow it, behind tabs of their own.
 */
record Description(ClientQuotaType type, Tags tags, double base, Double limit, boolean newcomer, String supplier,
        boolean exempt, double standIn, boolean standInMeasured, boolean floored, boolean failed) {

    /** Under the table's lock; client is null for a client that is not in the table. */
    static Description of(ClientQuotaType type, Client client, Tags tags, boolean newcomer, LimitRule rule) {
        int at = type.ordinal();
        double base = tags.base(at);
        double standIn = tags.standIn(at);
        boolean exempt = tags.exempt(at);
        boolean usesStandIn = rule.usesStandIn(at, base, exempt);
        String supplier = client == null ? "" : client.suppliers[at];
        return new Description(type, tags, base, tags.limit(at), newcomer, supplier, exempt,
                usesStandIn ? standIn : Double.NaN, tags.standInMeasured(at), rule.floored(at, base, standIn, exempt),
                client != null && client.unresolved);
    }

    /** Reads Kafka's MBeans, so the caller must not have the table's lock. */
    String line() {
        String standInKind = Double.isNaN(standIn) ? "" : standInMeasured ? "measured" : "newcomers";
        return Escape.fields(type.name(), tags.user, tags.clientId, base, limit, newcomer ? "newcomer" : "known",
                supplier, exempt, standIn, floored, standInKind, failed, KafkaRates.rate(type, tags),
                KafkaRates.delayMs(type, tags));
    }
}
