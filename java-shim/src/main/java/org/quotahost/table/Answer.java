package org.quotahost.table;

import java.util.Arrays;
import java.util.Set;

/**
 * The host's answer for a client: one row of its answers, which all clients with the same answer share.
 *
 * @param quotas by quota type
 * @param alike the answer is for all client-ids of the principal except the distinct ones; if false, their quotas may differ
 * @param distinct the client-ids of the principal whose quota may differ from the others' quota
 * @param shadow the quotas that suppliers in shadow would give, in the host's own words; "" for none
 */
public record Answer(Quota[] quotas, boolean alike, Set<String> distinct, String shadow) {
    /**
     * @param code the scope (Scopes)
     * @param rate before the factor, NaN for unlimited
     * @param group the name of the group that is the scope; "" for another scope
     * @param supplier the name of the supplier that gave the quota; "" for none
     */
    public record Quota(int code, double rate, String group, String supplier) {}

    /** The answer of a principal or client before the host's first answer. */
    static final Answer NONE = new Answer(new Quota[QuotaTable.TYPES], false, Set.of(), "");

    static {
        Arrays.fill(NONE.quotas, new Quota(Scopes.CLIENT, Double.NaN, "", ""));
    }

    /** Returns whether a supplier failed for one of the types. */
    boolean failed() {
        for (Quota quota : quotas) if (quota.code == Scopes.NEWCOMER) return true;
        return false;
    }
}
