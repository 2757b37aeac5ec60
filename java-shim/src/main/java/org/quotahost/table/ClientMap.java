package org.quotahost.table;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;

/**
 * The quota table's clients by principal and client-id: one hash table of chains, of a fixed size.
 *
 * <p>Any thread reads without a lock; one thread at a time writes, under the table's lock. Two nested
 * ConcurrentHashMaps would take twice as many steps, 57 ns for a look-up (docs/benchmarks.md).
 */
final class ClientMap {
    /** A longer chain is no accident: somebody chose the names. Clients that would lengthen it stay newcomers. */
    static final int LONGEST_CHAIN = 32;

    private final AtomicReferenceArray<Client> chains;
    private final int mask;

    /** @param clients how many clients it is made for; it takes more, and gets slower */
    ClientMap(int clients) {
        int size = Integer.highestOneBit(Math.max(64, Math.min(clients, 1 << 22))) << 2;
        chains = new AtomicReferenceArray<>(size);
        mask = size - 1;
    }

    /** The client with these names, or null. */
    Client get(String principal, String clientId) {
        Client client = chains.getAcquire(slot(principal, clientId));
        while (client != null && !(client.clientId.equals(clientId) && client.principal.equals(principal))) {
            client = client.next;
        }
        return client;
    }

    /** Adds a client that is not there. Answers false if its chain is full. */
    boolean add(Client client) {
        int slot = slot(client.principal, client.clientId);
        Client first = chains.getAcquire(slot);
        int length = 0;
        for (Client other = first; other != null; other = other.next) length++;
        if (length >= LONGEST_CHAIN) return false;
        client.next = first; // before the client is published, so that readers see the whole chain
        chains.setRelease(slot, client);
        return true;
    }

    /**
     * Removes a client that is there. It keeps its link, so that a reader that stands on it finds the rest of the
     * chain.
     */
    void remove(Client client) {
        int slot = slot(client.principal, client.clientId);
        Client before = chains.getAcquire(slot);
        if (before == client) {
            chains.setRelease(slot, client.next);
            return;
        }
        while (before.next != client) before = before.next;
        before.next = client.next;
    }

    /** Calls the action with each client; the action may remove the client that it gets. */
    void forEach(Consumer<Client> action) {
        for (int slot = 0; slot <= mask; slot++) {
            for (Client client = chains.getAcquire(slot); client != null; client = client.next) action.accept(client);
        }
    }

    private int slot(String principal, String clientId) {
        int hash = 31 * principal.hashCode() + clientId.hashCode();
        return (hash ^ hash >>> 16) & mask;
    }
}
