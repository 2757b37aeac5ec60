package org.quotahost.table;

import java.util.Arrays;
import java.util.Set;
import org.quotahost.fence.Exemptions;

/**
 * What the host has answered for a client: one row of its answers, which all clients with the same answer share.
 *
 * @param quotas by quota type
 * @param reach for whom the answer is: ALONE for this client; EACH tells that each client-id of the principal may have
 *     another quota; ALIKE holds for all its client-ids but the distinct ones
 * @param distinct the client-ids of the principal whose quota may differ from that of the others
 * @param shadow what suppliers in shadow would give, in the host's own words; "" for nothing
 */
public record Answer(Quota[] quotas, Reach reach, Set<String> distinct, String shadow) {
    public enum Reach { ALONE, EACH, ALIKE }

    /**
     * @param code the scope (Scopes)
     * @param rate before the factor, NaN for unlimited
     * @param group the name of the group that is the scope; "" for another scope
     * @param supplier who gave it, or why the client is exempt; "" for nobody
     */
    public record Quota(int code, double rate, String group, String supplier) {}

    /** What is known of somebody before the first answer. */
    static final Answer NONE = unlimited(Scopes.CLIENT, "", Reach.ALONE);

    private static Answer unlimited(int code, String supplier, Reach reach) {
        Quota[] quotas = new Quota[QuotaTable.TYPES];
        Arrays.fill(quotas, new Quota(code, Double.NaN, "", supplier));
        return new Answer(quotas, reach, Set.of(), "");
    }

    /** That of an exempt client, which needs no host; null if it is none. */
    static Answer ofExempt(String user, String clientId) {
        String reason = Exemptions.reason(user, clientId);
        if (reason == null) return null;
        // Who is known by its client-id tells nothing of the principal's others: of each the table asks Exemptions.
        return unlimited(Scopes.EXEMPT, reason, Exemptions.isKnownById(user, clientId) ? Reach.ALONE : Reach.ALIKE);
    }

    /** Whether a supplier failed for one of the types. */
    boolean failed() {
        for (Quota quota : quotas) if (quota.code == Scopes.NEWCOMER) return true;
        return false;
    }

    /** Whether the answer tells of all client-ids of its principal, as it is for this one. */
    boolean isOfPrincipal(String clientId) {
        return reach != Reach.ALONE && !failed() && !distinct.contains(clientId);
    }
}
