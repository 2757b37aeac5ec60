package org.quotahost.table;

import java.util.Arrays;
import java.util.Set;

/**
 * What the host has answered for a client: one row of its answers, which all clients with the same answer share.
 *
 * @param quotas by quota type
 * @param alike it holds for all client-ids of the principal but the distinct ones; if not, each may have another quota
 * @param distinct the client-ids of the principal whose quota may differ from that of the others
 * @param shadow what suppliers in shadow would give, in the host's own words; "" for nothing
 */
public record Answer(Quota[] quotas, boolean alike, Set<String> distinct, String shadow) {
    /**
     * @param code the scope (Scopes)
     * @param rate before the factor, NaN for unlimited
     * @param group the name of the group that is the scope; "" for another scope
     * @param supplier who gave it; "" for nobody
     */
    public record Quota(int code, double rate, String group, String supplier) {}

    /** What is known of somebody before the first answer. */
    static final Answer NONE = new Answer(new Quota[QuotaTable.TYPES], false, Set.of(), "");

    static {
        Arrays.fill(NONE.quotas, new Quota(Scopes.CLIENT, Double.NaN, "", ""));
    }

    /** Whether a supplier failed for one of the types. */
    boolean failed() {
        for (Quota quota : quotas) if (quota.code == Scopes.NEWCOMER) return true;
        return false;
    }
}
