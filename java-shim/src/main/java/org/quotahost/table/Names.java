package org.quotahost.table;

import org.quotahost.fence.Exemptions;

/**
 * How long the names are that the table keeps.
 *
 * <p>Kafka takes client-ids of 32,767 bytes, and a new one with each request. The table, the inbox and the tags that
 * Kafka keeps in its sensors may only grow by count and by length together; so a longer name is never posted or kept,
 * and nothing hashes it.
 */
final class Names {
    static final int LONGEST_CLIENT_ID = Exemptions.LONGEST_CLIENT_ID;
    static final int LONGEST_PRINCIPAL = 1_024;

    private Names() {}

    static boolean keeps(String clientId) {
        return clientId.length() <= LONGEST_CLIENT_ID;
    }

    static boolean keepsPrincipal(String name) {
        return name.length() <= LONGEST_PRINCIPAL;
    }

    /** The client-id, or as much of it as is kept: enough to learn from the host what its principal has. */
    static String shortened(String clientId) {
        return keeps(clientId) ? clientId : clientId.substring(0, LONGEST_CLIENT_ID);
    }
}
