package org.quotahost.table;

import java.net.InetAddress;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.quotahost.fence.Exemptions;
import org.quotahost.util.Names;

/**
 * The principals and clients that the quota table knows: this class finds a client's tags for a request thread, decides which
 * client-ids need an answer of their own, and counts the places that clients.max leaves.
 *
 * <p>A look-up begins with the principal, since a client-id is only a claim. A principal whose quota is the same for all
 * client-ids is known after its first request. Clients are kept by client-id only if their quota depends on it. This is the
 * only class that is optimized for speed: a look-up takes no lock, allocates nothing, and reads few objects.
 *
 * <p>There are clients.max places. A principal takes one place, and so does each of its clients in the table after the first.
 * The last tenth of the places is for principals only. A principal gets a place for another client only if at least as many
 * places are free as it has clients, so a principal that changes its client-id all the time leaves room for others.
 */
final class Principals {
    private static final int QUICK = 1 << 15;
    private static final int KEPT_FOR_PRINCIPALS = 10;

    private final ConcurrentHashMap<String, Entry> entries = new ConcurrentHashMap<>();
    /** The holder where a principal's look-ups end, by its hash: the principal or one of its clients; most users have one client. */
    private final AtomicReferenceArray<TagHolder> quick = new AtomicReferenceArray<>(QUICK);
    /** The number of places that are taken, and the number of all places. */
    volatile int size, max = 50_000;

    /** The end of a look-up: a client whose scopes depend on its client-id, or a principal (Entry). */
    static class TagHolder {
        final String principal;
        /** Null for all client-ids of the principal. */
        final String clientId;
        /** The holder's own tags by quota type, or null. They are fields: with an array each look-up would read one more object. */
        private final Tags produce, fetch, request, mutation;
        final Answer answer;
        /** Whether a supplier failed: then the last tags (or the newcomers') stay, and the host asks again. */
        final boolean failed;
        /** The beat at which Kafka last asked for this holder. */
        int seen;
        /** The address of the holder's last write or read, if quotahost's authorizer has seen it; otherwise null. */
        private InetAddress address;

        /** @param before the holder that this one replaces, or null */
        TagHolder(String principal, String clientId, Scope[] scopes, Answer answer, boolean failed, TagHolder before, int now) {
            this.principal = principal;
            this.clientId = clientId;
            produce = scopes == null ? null : scopes[0].own;
            fetch = scopes == null ? null : scopes[1].own;
            request = scopes == null ? null : scopes[2].own;
            mutation = scopes == null ? null : scopes[3].own;
            this.answer = answer;
            this.failed = failed;
            seen = before == null ? now : before.seen;
            address = before == null ? null : before.address;
        }

        final Tags tags(int type) {
            return switch (type) {
                case 0 -> produce;
                case 1 -> fetch;
                case 2 -> request;
                default -> mutation;
            };
        }

        /** Notes that Kafka asks for this holder. An equal value is not written: a write takes the cache line from other threads. */
        final void see(int beat) {
            if (seen != beat) seen = beat;
        }

        /** Notes the address on a request thread. Addresses are immutable, so a race loses one at most. */
        final void from(InetAddress now) {
            if (!now.equals(address)) address = now;
        }

        /** Returns for how many beats Kafka has not asked for this holder. */
        final int idle(int now) {
            return now - seen;
        }
    }

    /** A principal, and all that does not depend on its client-id; each answer replaces it as a whole. */
    static final class Entry extends TagHolder {
        /** The principal's sanitized name, as in Kafka's tags. */
        final String user;
        /**
         * The clients that have something of their own. The keys are texts, since Java's maps make a tree of comparable keys
         * with the same hash: client-ids that somebody has chosen to collide are not slower.
         */
        final ConcurrentHashMap<String, TagHolder> clients;
        /** The scope of all client-ids except the distinct ones, by quota type; null if each client-id has a scope of its own. */
        final Scope[] all;
        /** The scope of unknown client-ids for which all is null; before the beat formerUntil they have the former value of all. */
        final Scope newcomers;
        final Scope[] former;
        final int formerUntil;
        /** The client-ids whose quota may differ from the quota of the others. */
        final Set<String> distinct;
        private final String sample;

        /** @param before the entry that this one replaces, which has the principal's clients; null for a new principal */
        Entry(String name, Entry before, int now, Scope[] all, Scope newcomers, Scope[] former, int formerUntil,
                Set<String> distinct, String sample, Answer answer, boolean failed) {
            // A client of ANONYMOUS may be an exempt broker, so a look-up must always check the client-id, too.
            super(name, null, isComplete(all) && distinct.isEmpty() && !Exemptions.isAnonymous(name) ? all : null, answer, failed,
                    before, now);
            user = before == null ? Names.tag(name) : before.user;
            clients = before == null ? new ConcurrentHashMap<>(2) : before.clients;
            this.all = all;
            this.newcomers = newcomers;
            this.former = former;
            this.formerUntil = formerUntil;
            this.distinct = distinct;
            this.sample = sample;
        }

        /** Returns whether client-ids that are not distinct need nothing of their own. */
        private static boolean isComplete(Scope[] all) {
            for (Scope scope : all) if (scope == null) return false;
            return true;
        }

        /** Returns whether the host has answered for the principal. If not, the host must be asked, with any client-id. */
        boolean answered() {
            return answer != Answer.NONE;
        }

        /** Returns the client-id with which the host is asked for the principal again; "" if that client-id has become exempt. */
        String sample() {
            return Exemptions.reason(principal, sample) == null ? sample : "";
        }

        /** Returns whether a client-id needs something of its own. */
        boolean needs(String clientId) {
            return !isComplete(all) || distinct.contains(clientId);
        }

        TagHolder client(String clientId) {
            return clients.get(Names.kept(clientId));
        }

        /** Returns the end of a look-up with this client-id (as it is kept), or null. */
        TagHolder holder(String clientId) {
            return tags(0) != null ? this : clients.get(clientId);
        }

        /** Returns the scope of client-ids that are not known yet. */
        Scope unknown(int type, int now) {
            if (all[type] != null) return all[type];
            return former[type] != null && now - formerUntil < 0 ? former[type] : newcomers;
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Returns the end of a client's look-up if it is found without a map; otherwise null. */
    TagHolder quick(String name, String clientId) {
        if (!Names.keepsPrincipal(name)) return null;
        TagHolder holder = quick.getAcquire(place(name));
        if (holder == null || !holder.principal.equals(name)) return null;
        return holder.clientId == null || holder.clientId.equals(clientId) ? holder : null;
    }

    /** Notes on a request thread the address of a client that writes or reads (Fence.addresses), if the table knows the principal. */
    void from(AuthorizableRequestContext context) {
        InetAddress address = context.clientAddress();
        Entry entry = address == null ? null : entry(context.principal().getName());
        if (entry == null) return;
        TagHolder client = entry.client(context.clientId());
        (client == null ? entry : client).from(address);
    }

    /**
     * Returns the address of a user's last write or read, in digits, or "" if it is unknown: of this client-id if it has
     * something of its own, otherwise of the principal. If the client-id is "", the latest address of any client-id counts.
     */
    String address(String name, String clientId) {
        Entry entry = entry(name);
        if (entry == null) return "";
        TagHolder client = entry.client(clientId), last = client == null ? entry : client;
        if (clientId.isEmpty()) {
            for (TagHolder each : entry.clients.values()) {
                if (each.address != null && (last.address == null || each.seen - last.seen > 0)) last = each;
            }
        }
        return last.address == null ? "" : last.address.getHostAddress();
    }

    private static int place(String name) {
        int hash = name.hashCode();
        return (hash ^ hash >>> 15) & QUICK - 1;
    }

    Entry entry(String name) {
        return Names.keepsPrincipal(name) ? entries.get(name) : null;
    }

    boolean isFull() {
        return size >= max;
    }

    /** Returns whether there is a place for another client of a known principal. The first client uses the principal's place. */
    boolean hasPlaceFor(Entry entry) {
        int has = entry.clients.size();
        return has == 0 || max - max / KEPT_FOR_PRINCIPALS - size >= has;
    }

    // ---- under the table's lock ------------------------------------------------------------------------------

    void put(Entry entry) {
        // This may fail if the heap is full, so it comes first: otherwise quick look-ups would find the old entry for good.
        TagHolder client = entry.clients.isEmpty() ? null : entry.clients.values().iterator().next();
        Entry before = entries.put(entry.principal, entry);
        if (before == null) size = size + Math.max(1, entry.clients.size());
        quick(entry.principal, before, entry.tags(0) == null ? client : entry);
    }

    void put(Entry entry, TagHolder client) {
        TagHolder before = entry.clients.put(client.clientId, client);
        if (!entries.containsKey(entry.principal)) return; // if the heap is full, its principal may never get there
        if (before == null && entry.clients.size() > 1) size = size + 1;
        quick(entry.principal, before, client);
    }

    void remove(Entry entry) {
        entries.remove(entry.principal);
        size = size - Math.max(1, entry.clients.size());
        quick(entry.principal, entry, null);
    }

    void remove(Entry entry, TagHolder client) {
        if (entry.clients.remove(client.clientId) != null && !entry.clients.isEmpty()) size = size - 1;
        quick(entry.principal, client, entry.tags(0) == null ? null : entry);
    }

    /** Makes quick look-ups end at this holder in place of the one before it. A slot that another principal has stays as it is. */
    private void quick(String name, TagHolder before, TagHolder holder) {
        TagHolder there = quick.get(place(name));
        if (there == null || there == before) quick.setRelease(place(name), holder);
    }

    /** Forgets all that were silent for longer than so many beats. Returns the scopes that the others have. */
    Set<Scope> forgetIdle(int now, int longest) {
        Set<Scope> had = Collections.newSetFromMap(new IdentityHashMap<>());
        for (Entry entry : entries.values()) {
            for (TagHolder client : entry.clients.values()) {
                if (client.idle(now) > longest) remove(entry, client);
                else for (int type = 0; type < QuotaTable.TYPES; type++) had.add(client.tags(type).scope);
            }
            if (entry.clients.isEmpty() && entry.idle(now) > longest) {
                remove(entry);
                continue;
            }
            had.add(entry.newcomers);
            Collections.addAll(had, entry.all);
            Collections.addAll(had, entry.former);
        }
        return had;
    }

    void forEach(Consumer<Entry> action) {
        entries.values().forEach(action);
    }
}
