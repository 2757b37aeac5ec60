package org.quotahost.table;

/**
 * The host's answers for a batch of clients, as the flat arrays in which Python hands them over.
 *
 * <p>Client i of the batch and quota type t stand at index i x Tags.TYPES + t. QuotaTable.publish reads them.
 *
 * @param codes the scope of each quota (Scopes)
 * @param rates base rates, NaN for unlimited
 * @param groups the names of groups that codes refer to
 * @param supplierIndexes who gave each quota, as an index into suppliers; -1 for nobody
 * @param suppliers names of suppliers, and reasons for which a client is exempt
 */
record Answers(int[] codes, double[] rates, String[] groups, int[] supplierIndexes, String[] suppliers) {
    /** The answer for one client of the batch. */
    Answer of(int client) {
        return new Answer(this, client * Tags.TYPES);
    }

    /** One client's part of the arrays, from an index on. */
    record Answer(Answers all, int from) {
        int code(int type) {
            return all.codes[from + type];
        }

        double rate(int type) {
            return all.rates[from + type];
        }

        String[] groups() {
            return all.groups;
        }

        /** "" for nobody. */
        String supplier(int type) {
            int index = all.supplierIndexes[from + type];
            return index < 0 ? "" : all.suppliers[index];
        }
    }
}
