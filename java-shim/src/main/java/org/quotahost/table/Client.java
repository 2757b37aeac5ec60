package org.quotahost.table;

import java.util.Arrays;

/** One client in the table: its name as Kafka shows it and its tags for each quota type. */
final class Client {
    final String principal;
    final String clientId;

    /** By quota type; replaced as a whole, so that a request thread sees one answer or the next. */
    volatile Tags[] tags;

    /** Which supplier gave each quota, or why it is exempt; "" for nobody. Only under the table's lock. */
    String[] sources;

    /** The next in its chain of the ClientMap. */
    volatile Client next;

    /** When Kafka last asked for it, by quota type, in the table's beats: written by request threads, only when it differs. */
    final int[] seen = new int[Tags.TYPES];

    /** A supplier failed for it: it shares the newcomers' tags and is asked for again. */
    boolean unresolved;

    Client(String principal, String clientId, int now) {
        this.principal = principal;
        this.clientId = clientId;
        Arrays.fill(seen, now);
    }

    /** For how many beats Kafka has asked nothing about it. */
    int idle(int now) {
        int least = Integer.MAX_VALUE;
        for (int at : seen) least = Math.min(least, now - at);
        return least;
    }
}
