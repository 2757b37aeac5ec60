package org.quotahost.table;

/**
 * The host's answers for a batch of clients, by client and quota type: a scope code (Scopes), a rate (NaN for
 * unlimited), and who says so, an index into the suppliers (or reasons of an exemption), -1 for nobody.
 */
record Answers(int[] codes, double[] rates, String[] groups, int[] sources, String[] suppliers) {
    /** The answer for one client of the batch. */
    Answer of(int client) {
        return new Answer(this, client * Tags.TYPES);
    }

    /** Where it stands in the arrays. */
    record Answer(Answers all, int at) {
        int code(int type) {
            return all.codes[at + type];
        }

        double rate(int type) {
            return all.rates[at + type];
        }

        String[] groups() {
            return all.groups;
        }

        String source(int type) {
            int source = all.sources[at + type];
            return source < 0 ? "" : all.suppliers[source];
        }
    }
}
