package org.quotahost.table;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.quotahost.inbox.Batch;

/**
 * The principals and clients that the quota table knows, and how many more it has room for.
 *
 * <p>There are clients.max places. A principal takes one, and so does each client that it has in the table beyond the
 * first. The last tenth of the places is for principals alone, so that one which changes its client-id all the time
 * leaves room for the others. Any thread reads; writing is under the table's lock.
 */
final class Remembered {
    private static final int QUICK = 1 << 15;
    private static final int KEPT_FOR_PRINCIPALS = 10;

    private final ConcurrentHashMap<String, Principal> principals = new ConcurrentHashMap<>();
    /** Most of the principals by hash, each alone in its place: the map takes more steps. */
    private final AtomicReferenceArray<Principal> quick = new AtomicReferenceArray<>(QUICK);
    /** Principals whose unknown client-ids have, for a while, the tags that all had before; under the lock. */
    private final Set<Principal> former = new LinkedHashSet<>();
    private volatile int size;
    private volatile int max = 50_000;

    /** The principal with this name, or null; a name that is too long is not looked for. */
    Principal principal(String name) {
        if (!Names.keepsPrincipal(name)) return null;
        Principal one = quick.getAcquire(place(name));
        return one != null && one.name.equals(name) ? one : principals.get(name);
    }

    private static int place(String name) {
        int hash = name.hashCode();
        return (hash ^ hash >>> 15) & QUICK - 1;
    }

    /** How many places are taken. */
    int size() {
        return size;
    }

    int max() {
        return max;
    }

    void max(int places) {
        max = places;
    }

    /** Whether there is no place for a further principal. */
    boolean isFull() {
        return size >= max;
    }

    /** Whether there is no place for a further client of a principal that has some. */
    boolean isFullForClients() {
        return size >= max - max / KEPT_FOR_PRINCIPALS;
    }

    /** Whether there is a place for a further client of a known principal; its first one has the principal's own. */
    boolean hasPlaceFor(Principal principal) {
        return principal.clients.isEmpty() || !isFullForClients();
    }

    void add(Principal principal) {
        principals.put(principal.name, principal);
        quick.setRelease(place(principal.name), principal);
        size = size + Math.max(1, principal.clients.size());
    }

    void add(Principal principal, Client client) {
        boolean first = principal.clients.isEmpty();
        principal.clients.put(client.clientId, client);
        if (first) principal.first = client;
        if (!first && principals.containsKey(principal.name)) size = size + 1;
    }

    void remove(Principal principal) {
        principals.remove(principal.name);
        quick.compareAndSet(place(principal.name), principal, null);
        size = size - Math.max(1, principal.clients.size());
    }

    void remove(Principal principal, Client client) {
        if (principal.first == client) principal.first = null;
        if (principal.clients.remove(client.clientId) != null && !principal.clients.isEmpty()) size = size - 1;
    }

    /** The principal's client-ids keep what they had until a beat, the same number of beats for each principal. */
    void keepFormer(Principal principal, int until) {
        principal.formerUntil = until;
        former.add(principal);
    }

    /** A principal whose client-ids have kept what they had for long enough, or null. */
    Principal pollFormer(int now) {
        if (former.isEmpty()) return null;
        Principal first = former.iterator().next();
        return now - first.formerUntil >= 0 && former.remove(first) ? first : null;
    }

    /** Calls the action with each principal; the action may remove it. */
    void forEach(Consumer<Principal> action) {
        principals.values().forEach(action);
    }

    /** Calls the action with each client. */
    void forEachClient(Consumer<Client> action) {
        forEach(principal -> principal.clients.values().forEach(action));
    }

    /**
     * A batch for the host to resolve again. What holds for a principal may depend on any of its client-ids, so each
     * principal is in it by a client-id of its own.
     */
    Batch select(Predicate<Principal> principal, Predicate<Client> client) {
        List<Batch.Lookup> lookups = new ArrayList<>();
        forEach(each -> {
            boolean asked = principal.test(each) && each.whole().alike();
            if (asked && !each.clients.containsKey(each.sample)) {
                lookups.add(new Batch.Lookup(each.name, each.sample, Batch.Lookup.OF_PRINCIPAL));
            }
            for (Client one : each.clients.values()) {
                boolean sample = asked && one.clientId.equals(each.sample);
                if (sample || client.test(one)) lookups.add(new Batch.Lookup(each.name, one.clientId, 0));
            }
        });
        return new Batch(lookups, List.of());
    }
}
