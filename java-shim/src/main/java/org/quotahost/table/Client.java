package org.quotahost.table;

/** One client in the quota table whose tags depend on its client-id: its names as Kafka reports them, and its tags. */
final class Client extends Known {
    final String principal;
    /** The principal as Kafka has it in tags (Principal.user). */
    final String user;
    final String clientId;

    /** By quota type, the supplier that gave the quota, or why the client is exempt; "" for neither. */
    String[] suppliers;

    /** By quota type, what suppliers in shadow would give; null for nothing. */
    WouldBe[] would;

    /**
     * A supplier failed for this client: it shares the newcomers' tags or keeps its last ones, and the host tries
     * again.
     */
    boolean unresolved;

    Client(Principal principal, String clientId, int now) {
        super(now);
        this.principal = principal.name;
        this.user = principal.user;
        this.clientId = clientId;
    }
}
