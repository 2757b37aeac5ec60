package org.quotahost.table;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/**
 * What the host has answered for a client: one row of its answers, which all clients with the same answer share.
 *
 * @param codes by quota type, the scope of the quota (Scopes)
 * @param rates by quota type, the base rate, NaN for unlimited
 * @param groups the names of groups, to which codes refer
 * @param suppliers by quota type, who gave the quota, or why the client is exempt; "" for nobody
 * @param reach for whom the answer is: ALONE for this client; EACH tells that each client-id of the principal may have
 *     another quota; ALIKE holds for all its client-ids but the distinct ones
 * @param distinct the client-ids of the principal whose quota may differ from that of the others
 * @param shadow what suppliers in shadow would give, in the host's own words; "" for nothing
 */
record Answer(int[] codes, double[] rates, String[] groups, String[] suppliers, Reach reach, Set<String> distinct,
        String shadow) {
    enum Reach { ALONE, EACH, ALIKE }

    /** In the host's arrays, in place of an index of distinct client-ids. */
    static final int EACH = -1, ALONE = -2;

    /** What is known of somebody before the first answer. */
    static final Answer NONE =
            new Answer(new int[0], new double[0], new String[0], new String[] {"", "", "", ""}, Reach.ALONE, Set.of(), "");

    /** The rows of a batch, from the flat arrays of QuotaTable.publish. */
    static List<Answer> rows(int[] codes, double[] rates, String[] groups, int[] supplierIndexes, String[] suppliers,
            int[] distinct, Set<String>[] distinctIds, String[] shadows) {
        List<Answer> rows = new ArrayList<>(distinct.length);
        for (int row = 0; row < distinct.length; row++) {
            int from = row * QuotaTable.TYPES;
            int to = from + QuotaTable.TYPES;
            String[] givers = Arrays.stream(supplierIndexes, from, to).mapToObj(at -> at < 0 ? "" : suppliers[at])
                    .toArray(String[]::new);
            int which = distinct[row];
            Reach reach = which == ALONE ? Reach.ALONE : which == EACH ? Reach.EACH : Reach.ALIKE;
            rows.add(new Answer(Arrays.copyOfRange(codes, from, to), Arrays.copyOfRange(rates, from, to), groups, givers,
                    reach, which < 0 ? Set.of() : distinctIds[which], shadows[row]));
        }
        return rows;
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
