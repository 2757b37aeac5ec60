package org.quotahost;

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

    /** The tick at which it was last seen: written by request threads, only when it differs. */
    int seen;

    /** A supplier failed for it: it shares the newcomers' tags and is asked for again. */
    boolean unresolved;

    Client(String principal, String clientId, int tick) {
        this.principal = principal;
        this.clientId = clientId;
        this.seen = tick;
    }
}
