package org.quotahost.table;

import java.util.Arrays;

/**
 * One client in the quota table whose tags depend on its client-id: its names as Kafka reports them, and its tags for
 * each quota type.
 *
 * <p>Request threads read tags and write seen; all else is written under the table's lock.
 */
final class Client {
    final String principal;
    /** The principal as Kafka has it in tags (Principal.user). */
    final String user;
    final String clientId;

    /** By quota type; replaced as a whole, so that a request thread sees one answer of the host or the next. */
    volatile Tags[] tags;

    /** By quota type, the supplier that gave the quota, or why the client is exempt; "" for neither. */
    String[] suppliers;

    /** By quota type, the beat of the table's clock at which Kafka asked for it last; written only when it differs. */
    final int[] seen = new int[Tags.TYPES];

    /**
     * A supplier failed for this client: it shares the newcomers' tags or keeps its last ones, and the host tries
     * again.
     */
    boolean unresolved;

    Client(Principal principal, String clientId, int now) {
        this.principal = principal.name;
        this.user = principal.user;
        this.clientId = clientId;
        Arrays.fill(seen, now);
    }

    /** For how many beats Kafka has not asked for it. */
    int idle(int now) {
        return idle(seen, now);
    }

    static int idle(int[] seen, int now) {
        int least = Integer.MAX_VALUE;
        for (int beat : seen) least = Math.min(least, now - beat);
        return least;
    }
}
