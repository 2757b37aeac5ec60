package org.quotahost.table;

/**
 * What holds for a principal whatever its client-id; replaced as a whole, so that a request thread sees one answer of
 * the host or the next.
 *
 * @param tags by quota type, the tags of all its client-ids but the distinct ones; null where each client-id has tags
 *     of its own
 * @param unknown by quota type, the tags of its client-ids that are not known yet; never null
 * @param answered whether the host has answered for the principal at all; else it has to be asked, by any client-id
 * @param alike whether all client-ids but the distinct ones have the same quota, though maybe tags of their own
 * @param distinct the client-ids whose quota may differ from that of the others
 * @param suppliers by quota type, who gave the quota; null where tags is
 */
record Whole(Tags[] tags, Tags[] unknown, boolean answered, boolean alike, ClientIds distinct, String[] suppliers) {
    /** Whether client-ids that are not distinct need nothing of their own. */
    boolean complete() {
        for (Tags each : tags) if (each == null) return false;
        return true;
    }

    /** Whether a type's tags or those for unknown client-ids are these. */
    boolean has(int type, Tags some) {
        return tags[type] == some || unknown[type] == some;
    }
}
