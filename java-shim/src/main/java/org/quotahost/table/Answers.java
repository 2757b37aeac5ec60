package org.quotahost.table;

import java.util.Arrays;

/**
 * The host's answers for a batch of clients, as the flat arrays in which Python hands them over.
 *
 * <p>Many clients have the same answer, so each answer is there once, as a row: client i of the batch has row rows[i],
 * and quota type t of row r stands at index r x Tags.TYPES + t. QuotaTable.publish reads them.
 *
 * @param rows the row of each client
 * @param codes the scope of each quota (Scopes)
 * @param rates base rates, NaN for unlimited
 * @param groups the names of groups that codes refer to
 * @param supplierIndexes who gave each quota, as an index into suppliers; -1 for nobody
 * @param suppliers names of suppliers, and reasons for which a client is exempt
 * @param distinct for each row, the client-ids of its principal whose quota differs, as an index into distinctIds;
 *     EACH or ALONE
 * @param would for each row and quota type, what a supplier in shadow would give, or null; null if there is nothing
 */
record Answers(int[] rows, int[] codes, double[] rates, String[] groups, int[] supplierIndexes, String[] suppliers,
        int[] distinct, ClientIds[] distinctIds, WouldBe[] would) {
    /** In distinct: each client-id of the principal may have another quota. */
    static final int EACH = -1;
    /** In distinct: the answer is for this client alone, and tells nothing about others of its principal. */
    static final int ALONE = -2;

    /**
     * What suppliers in shadow would give, for each row and quota type.
     *
     * @param at for which rows and types, r x Tags.TYPES + t; by this the scope, the base rate and the supplier
     */
    static WouldBe[] would(int length, int[] at, int[] codes, double[] rates, int[] supplierIndexes, String[] groups,
            String[] suppliers) {
        WouldBe[] all = new WouldBe[length];
        for (int i = 0; i < at.length; i++) {
            String group = codes[i] >= Scopes.GROUP ? groups[codes[i] - Scopes.GROUP] : "";
            all[at[i]] = new WouldBe(codes[i], rates[i], group, suppliers[supplierIndexes[i]]);
        }
        return all;
    }

    /** The answer for one client of the batch. */
    Answer of(int client) {
        return new Answer(this, rows[client] * Tags.TYPES, distinct[rows[client]]);
    }

    /** One client's part of the arrays, from an index on. */
    record Answer(Answers all, int from, int distinct) {
        int code(int type) {
            return all.codes[from + type];
        }

        double rate(int type) {
            return all.rates[from + type];
        }

        String[] groups() {
            return all.groups;
        }

        /** What suppliers in shadow would give by quota type; null if there is nothing. */
        WouldBe[] would() {
            if (all.would == null) return null;
            WouldBe[] some = Arrays.copyOfRange(all.would, from, from + Tags.TYPES);
            for (WouldBe each : some) if (each != null) return some;
            return null;
        }

        /** Whether a supplier failed for one of the types. */
        boolean failed() {
            for (int type = 0; type < Tags.TYPES; type++) if (code(type) == Scopes.NEWCOMER) return true;
            return false;
        }

        /** The client-ids of the principal whose quota differs; null if each one's may. */
        ClientIds distinctIds() {
            return distinct < 0 ? null : all.distinctIds[distinct];
        }

        /** Whether the answer is what all client-ids of its principal would get, but for the distinct ones. */
        boolean isOfPrincipal(String clientId) {
            return distinct != ALONE && !failed() && (distinct == EACH || !distinctIds().contains(clientId));
        }

        /** "" for nobody. */
        String supplier(int type) {
            int index = all.supplierIndexes[from + type];
            return index < 0 ? "" : all.suppliers[index];
        }
    }
}
