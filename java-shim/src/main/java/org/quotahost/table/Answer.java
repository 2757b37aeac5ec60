package org.quotahost.table;

import java.util.Arrays;
import java.util.Set;
import org.quotahost.fence.Exemptions;

/**
 * What the host has answered for a client: one row of its answers, which all clients with the same answer share. Arrays go by
 * quota type.
 *
 * @param codes the scope of the quota (Scopes)
 * @param rates the base rate, NaN for unlimited
 * @param groups the name of the group that is the scope; "" for another scope
 * @param suppliers who gave the quota, or why the client is exempt; "" for nobody
 * @param reach for whom the answer is: ALONE for this client; EACH tells that each client-id of the principal may have
 *     another quota; ALIKE holds for all its client-ids but the distinct ones
 * @param distinct the client-ids of the principal whose quota may differ from that of the others
 * @param shadow what suppliers in shadow would give, in the host's own words; "" for nothing
 */
public record Answer(int[] codes, double[] rates, String[] groups, String[] suppliers, Reach reach, Set<String> distinct,
        String shadow) {
    public enum Reach { ALONE, EACH, ALIKE }

    /** What is known of somebody before the first answer. */
    static final Answer NONE =
            new Answer(new int[0], new double[0], new String[0], new String[] {"", "", "", ""}, Reach.ALONE, Set.of(), "");

    /** That of an exempt client, which needs no host; null if it is none. */
    static Answer ofExempt(String user, String clientId) {
        String reason = Exemptions.reason(user);
        // Known by its client-id alone, it tells nothing of the principal's others: of each the table asks Exemptions.
        boolean alone = reason == null;
        if (alone && !Exemptions.isKnownById(user, clientId)) return null;
        if (alone) reason = clientId.startsWith("quotahost-") ? "plugin" : "broker";
        int[] codes = new int[QuotaTable.TYPES];
        double[] rates = new double[QuotaTable.TYPES];
        Arrays.fill(codes, Scopes.EXEMPT);
        Arrays.fill(rates, Double.NaN);
        return new Answer(codes, rates, new String[] {"", "", "", ""}, new String[] {reason, reason, reason, reason},
                alone ? Reach.ALONE : Reach.ALIKE, Set.of(), "");
    }

    /** The same without what shadow tells. */
    Answer withSuppliers(String[] others) {
        return new Answer(codes, rates, groups, others, reach, distinct, "");
    }

    /** Whether a supplier failed for one of the types. */
    boolean failed() {
        for (int code : codes) if (code == Scopes.NEWCOMER) return true;
        return false;
    }

    /** Whether the answer tells of all client-ids of its principal, as it is for this one. */
    boolean isOfPrincipal(String clientId) {
        return reach != Reach.ALONE && !failed() && !distinct.contains(clientId);
    }
}
