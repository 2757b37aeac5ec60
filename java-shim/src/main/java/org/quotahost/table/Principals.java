package org.quotahost.table;

import java.net.InetAddress;
import java.util.Arrays;
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
 * The principals and clients that the quota table knows: how a request thread finds a client's tags, which client-ids
 * need an answer of their own, and how many of clients.max places are left for whom.
 *
 * <p>A look-up begins with the principal, since a client-id is only a claim. A principal whose quota is the same for all
 * client-ids is known after its first request. Clients are kept by client-id only where their quota depends on it. This
 * is the one class that is written for speed: a look-up takes no lock, allocates nothing, and reads few objects.
 *
 * <p>There are clients.max places. A principal takes one, and so does each client that it has in the table beyond the
 * first. The last tenth of the places is for principals alone, and a principal takes a place for a further client only
 * while as many as it has are left for others: so one that changes its client-id all the time leaves room for them.
 */
final class Principals {
    private static final int QUICK = 1 << 15;
    private static final int KEPT_FOR_PRINCIPALS = 10;

    private final ConcurrentHashMap<String, Entry> entries = new ConcurrentHashMap<>();
    /** By the principal's hash, where its look-ups end: at the principal, or at one of its clients; most users have one. */
    private final AtomicReferenceArray<TagHolder> quick = new AtomicReferenceArray<>(QUICK);
    /** How many places are taken, and how many there are. */
    volatile int size, max = 50_000;

    /** Where a look-up ends: a client whose scopes depend on its client-id, or a principal (Entry). */
    static class TagHolder {
        final String principal;
        /** Null for all client-ids of the principal. */
        final String clientId;
        /** Its own tags by quota type, or none. In fields: with an array each look-up would read one more object. */
        private final Tags produce, fetch, request, mutation;
        final Answer answer;
        /** A supplier failed: the last tags stay, or the newcomers' ones, and the host asks again. */
        final boolean failed;
        /** The beat at which Kafka asked for it last. */
        int seen;
        /** From where it wrote or read last, as far as an authorizer of quotahost's has seen it; null otherwise. */
        private InetAddress address;

        /** @param before in whose place it is, or null */
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

        /** On a request thread: Kafka asks for it. It doesn't write each time: that moves the cache line away from the others. */
        final void see(int beat) {
            if (seen != beat) seen = beat;
        }

        /** On a request thread. An address is immutable, so a race loses one at most. */
        final void from(InetAddress now) {
            if (!now.equals(address)) address = now;
        }

        /** For how many beats Kafka has not asked for it. */
        final int idle(int now) {
            return now - seen;
        }
    }

    /** A principal, and what holds whatever its client-id; replaced as a whole by each answer. */
    static final class Entry extends TagHolder {
        /** The name as Kafka has it in tags, sanitized. */
        final String user;
        /**
         * The clients that have something of their own. The keys are texts, which Java arranges as a tree where many have one
         * hash; so names that were chosen to collide are no slower.
         */
        final ConcurrentHashMap<String, TagHolder> clients;
        /** By quota type, the scope of all its client-ids but the distinct ones; null where each has a scope of its own. */
        final Scope[] all;
        /** What unknown client-ids have where all is null; until a beat, by quota type, what all had before. */
        final Scope newcomers;
        final Scope[] former;
        final int formerUntil;
        /** The client-ids whose quota may differ from that of the others. */
        final Set<String> distinct;
        private final String sample;
        /** Whether client-ids that are not distinct need nothing of their own. */
        final boolean complete;

        /** @param before what was in its place, and has the principal's clients; null for a new principal */
        Entry(String name, Entry before, int now, Scope[] all, Scope newcomers, Scope[] former, int formerUntil,
                Set<String> distinct, String sample, Answer answer, boolean failed) {
            // Anybody may be ANONYMOUS, an exempt broker, too: no look-up ends before the client-id has been asked about.
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
            complete = isComplete(all);
        }

        private static boolean isComplete(Scope[] all) {
            return !Arrays.asList(all).contains(null);
        }

        /** Whether the host has answered for the principal at all; else it has to be asked, by any client-id. */
        boolean answered() {
            return answer != Answer.NONE;
        }

        /** A client-id by which the host is asked for the principal's answer again; "" where the first one is exempt by now. */
        String sample() {
            return Exemptions.reason(principal, sample) == null ? sample : "";
        }

        /** Whether a client-id needs something of its own. */
        boolean needs(String clientId) {
            return !complete || distinct.contains(clientId);
        }

        TagHolder client(String clientId) {
            return clients.get(Names.kept(clientId));
        }

        /** Where a look-up with this client-id, as it is kept, ends, or null. */
        TagHolder holder(String clientId) {
            return tags(0) != null ? this : clients.get(clientId);
        }

        /** The scope of client-ids that are not known yet. */
        Scope unknown(int type, int now) {
            if (all[type] != null) return all[type];
            return former[type] != null && now - formerUntil < 0 ? former[type] : newcomers;
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Where the look-up of a client ends, if that is found without a map; else null. */
    TagHolder quick(String name, String clientId) {
        if (!Names.keepsPrincipal(name)) return null;
        TagHolder holder = quick.getAcquire(place(name));
        if (holder == null || !holder.principal.equals(name)) return null;
        return holder.clientId == null || holder.clientId.equals(clientId) ? holder : null;
    }

    /** On a request thread: a client writes or reads from an address (Fence.addresses); of strangers none is kept. */
    void from(AuthorizableRequestContext context) {
        InetAddress address = context.clientAddress();
        Entry entry = address == null ? null : entry(context.principal().getName());
        if (entry == null) return;
        TagHolder client = entry.client(context.clientId());
        (client == null ? entry : client).from(address);
    }

    /**
     * From where a user wrote or read last, in digits, "" if that isn't known: under a client-id, if that has something of
     * its own; as a whole (without a client-id) under any.
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

    /** Whether there is a place for a further client of a known principal; its first one has the principal's own. */
    boolean hasPlaceFor(Entry entry) {
        int has = entry.clients.size();
        return has == 0 || max - max / KEPT_FOR_PRINCIPALS - size >= has;
    }

    // ---- under the table's lock ------------------------------------------------------------------------------

    void put(Entry entry) {
        // First: where the heap is full a look-up must not end for good at what was there before.
        TagHolder client = entry.clients.isEmpty() ? null : entry.clients.values().iterator().next();
        Entry before = entries.put(entry.principal, entry);
        if (before == null) size = size + Math.max(1, entry.clients.size());
        quick(entry.principal, before, entry.tags(0) == null ? client : entry);
    }

    void put(Entry entry, TagHolder client) {
        TagHolder before = entry.clients.put(client.clientId, client);
        if (!entries.containsKey(entry.principal)) return; // where the heap is full its principal may never get there
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

    /** Has quick look-ups end at a holder in place of the one before it; a place that another one has stays as it is. */
    private void quick(String name, TagHolder before, TagHolder holder) {
        TagHolder there = quick.get(place(name));
        if (there == null || there == before) quick.setRelease(place(name), holder);
    }

    /** Forgets who was silent for longer than so many beats. Answers the scopes that the others have. */
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
