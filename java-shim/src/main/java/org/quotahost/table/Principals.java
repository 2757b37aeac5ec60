package org.quotahost.table;

import java.net.InetAddress;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.Exemptions;
import org.quotahost.table.Publication.Answer;
import org.quotahost.util.Sanitized;

/**
 * The principals and clients that the quota table knows: how a request thread finds a client's scopes, and how many more
 * there is room for.
 *
 * <p>A look-up begins with the principal, since a client-id is only a claim. What holds for all client-ids of a principal
 * is kept with it, so such a principal is known after its first request, whatever client-id comes next. Clients are kept by
 * client-id only where their quota depends on it. This is the one place that is written for speed: a hit takes no lock,
 * allocates nothing, and reads as few objects as can be.
 *
 * <p>There are clients.max places. A principal takes one, and so does each client that it has in the table beyond the
 * first. The last tenth of the places is for principals alone, and a principal takes a place for a further client only
 * while as many as it has are left for others: so one that changes its client-id all the time leaves room for them.
 */
final class Principals {
    /**
     * Kafka takes client-ids of 32,767 bytes, and a new one with each request. The table, the inbox and the tags that Kafka
     * keeps in its sensors may only grow by count and by length together: nothing posts, keeps or hashes a longer name.
     */
    static final int LONGEST_CLIENT_ID = Exemptions.LONGEST_CLIENT_ID;
    static final int LONGEST_PRINCIPAL = 1_024;
    private static final int QUICK = 1 << 15;
    private static final int KEPT_FOR_PRINCIPALS = 10;

    private final ConcurrentHashMap<String, Entry> entries = new ConcurrentHashMap<>();
    /** Most of the entries by hash, each alone in its place: the map takes more steps. */
    private final AtomicReferenceArray<Entry> quick = new AtomicReferenceArray<>(QUICK);
    private volatile int size;
    private volatile int max = 50_000;

    /** What a look-up ends at: the own tags of a principal or of a client, by quota type; null where it does not end here. */
    abstract static class Known {
        /** In fields: with an array each look-up would read one more object (docs/benchmarks.md). */
        private final Tags produce, fetch, request, mutation;
        /** What the host has answered for it. */
        final Answer answer;
        /** The beat at which Kafka asked for it last, as far as it fits, and in the lowest bits for which types. */
        private int seen;
        /** From where it wrote or read last, as far as an authorizer of quotahost's has seen it; null otherwise. */
        private InetAddress address;

        /** @param beat when Kafka asked for it last */
        Known(Scope[] scopes, Answer answer, int beat) {
            produce = own(scopes[0]);
            fetch = own(scopes[1]);
            request = own(scopes[2]);
            mutation = own(scopes[3]);
            this.answer = answer;
            seen = beat << QuotaTable.TYPES;
        }

        private static Tags own(Scope scope) {
            return scope == null ? null : scope.own;
        }

        final Tags tags(int type) {
            return switch (type) {
                case 0 -> produce;
                case 1 -> fetch;
                case 2 -> request;
                default -> mutation;
            };
        }

        /**
         * On a request thread: Kafka asks for a type. Answers whether it is the first time in this beat. Only what differs is
         * written: a write moves the cache line away from the other threads.
         */
        final boolean see(int type, int beat) {
            int last = seen;
            boolean sameBeat = (last ^ beat << QuotaTable.TYPES) >>> QuotaTable.TYPES == 0;
            if (sameBeat && (last & 1 << type) != 0) return false;
            seen = (sameBeat ? last : beat << QuotaTable.TYPES) | 1 << type;
            return true;
        }

        /** On a request thread. An address is immutable, so a race loses one at most. */
        final void from(InetAddress now) {
            if (!now.equals(address)) address = now;
        }

        /** It takes the place of another, whose address it keeps. */
        final void follows(Known before) {
            if (before != null) address = before.address;
        }

        /** In digits; "" if none is known. */
        final String address() {
            InetAddress last = address;
            return last == null ? "" : last.getHostAddress();
        }

        /** As much of the beat at which Kafka asked for it last as is kept. */
        final int seen() {
            return seen >> QuotaTable.TYPES;
        }

        /** For how many beats Kafka has not asked for it; right for some 300 days. */
        final int idle(int now) {
            return (now << QuotaTable.TYPES) - (seen & -1 << QuotaTable.TYPES) >> QuotaTable.TYPES;
        }
    }

    /** A client whose scopes depend on its client-id. */
    static final class Client extends Known {
        final String clientId;
        /** A supplier failed for it: it has the newcomers' tags or keeps its last ones, and the host tries again. */
        final boolean failed;

        Client(String clientId, Scope[] scopes, Answer answer, boolean failed, int seen) {
            super(scopes, answer, seen);
            this.clientId = clientId;
            this.failed = failed;
        }
    }

    /** One principal, and what holds whatever its client-id; replaced as a whole by each answer. */
    static final class Entry extends Known {
        final String name;
        /** The name as Kafka has it in tags, sanitized. */
        final String user;
        /**
         * The clients that have something of their own. The keys are texts, which Java arranges as a tree where many have one
         * hash; so names that were chosen to collide are no slower.
         */
        final ConcurrentHashMap<String, Client> clients;
        /** One of them, which is found without the map: most users have one. */
        volatile Client first;
        /** By quota type, the scope of all its client-ids but the distinct ones; null where each has a scope of its own. */
        final Scope[] all;
        /** By quota type, the scope of its client-ids that are not known yet; never null. */
        final Scope[] unknown;
        /** What unknown client-ids have until a beat, since all had it before the answer depended on the client-id. */
        final Scope[] former;
        final int formerUntil;
        /** The client-ids whose quota may differ from that of the others. */
        final Set<String> distinct;
        /** A client-id by which the host can ask for the principal's answer again. */
        final String sample;
        /** A supplier failed for it, so the host asks again. */
        final boolean failed;
        /** Whether client-ids that are not distinct need nothing of their own. */
        final boolean complete;

        /** @param before what was in its place, and has the principal's clients; null for a new principal */
        Entry(String name, Entry before, int now, Scope[] all, Scope[] unknown, Scope[] former, int formerUntil,
                Set<String> distinct, String sample, Answer answer, boolean failed) {
            super(isComplete(all) && distinct.isEmpty() && !isAnonymous(name) ? all : new Scope[QuotaTable.TYPES], answer,
                    before == null ? now : before.seen());
            follows(before);
            this.name = name;
            user = before == null ? Sanitized.tag(name) : before.user;
            clients = before == null ? new ConcurrentHashMap<>(2) : before.clients;
            first = before == null ? null : before.first;
            this.all = all;
            this.unknown = unknown;
            this.former = former;
            this.formerUntil = formerUntil;
            this.distinct = distinct;
            this.sample = sample;
            this.failed = failed;
            complete = isComplete(all);
        }

        private static boolean isComplete(Scope[] all) {
            for (Scope scope : all) if (scope == null) return false;
            return true;
        }

        private static boolean isAnonymous(String name) {
            return name.equals(KafkaPrincipal.ANONYMOUS.getName());
        }

        /** Whether the host has answered for the principal at all; else it has to be asked, by any client-id. */
        boolean answered() {
            return answer != Answer.NONE;
        }

        /** Whether a client-id needs something of its own. Anybody may be ANONYMOUS, an exempt broker, too. */
        boolean needs(KafkaPrincipal principal, String clientId) {
            return !complete || isDistinct(clientId) || isAnonymous(name) && Exemptions.exempt(principal, clientId);
        }

        /** Any length of a name may come, so the length is looked at before the whole name would be hashed. */
        boolean isDistinct(String clientId) {
            return !distinct.isEmpty() && keeps(clientId) && distinct.contains(clientId);
        }

        /** The client with this client-id, or null. */
        Client client(String clientId) {
            Client one = first;
            if (one != null && one.clientId.equals(clientId)) return one;
            return keeps(clientId) ? clients.get(clientId) : null;
        }

        Scope unknown(int type, int now) {
            return former[type] != null && now - formerUntil < 0 ? former[type] : unknown[type];
        }
    }

    static boolean keeps(String clientId) {
        return clientId.length() <= LONGEST_CLIENT_ID;
    }

    static boolean keepsPrincipal(String name) {
        return name.length() <= LONGEST_PRINCIPAL;
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** The principal with this name, or null; a name that is too long is not looked for. */
    Entry entry(String name) {
        if (!keepsPrincipal(name)) return null;
        Entry one = quick.getAcquire(place(name));
        return one != null && one.name.equals(name) ? one : entries.get(name);
    }

    private static int place(String name) {
        int hash = name.hashCode();
        return (hash ^ hash >>> 15) & QUICK - 1;
    }

    /** Whether there is no place for a further principal. */
    boolean isFull() {
        return size >= max;
    }

    /** Whether there is a place for a further client of a known principal; its first one has the principal's own. */
    boolean hasPlaceFor(Entry entry) {
        int has = entry.clients.size();
        return has == 0 || max - max / KEPT_FOR_PRINCIPALS - size >= has;
    }

    // ---- under the table's lock ------------------------------------------------------------------------------

    int size() {
        return size;
    }

    int max() {
        return max;
    }

    void max(int places) {
        max = places;
    }

    /** Puts an entry in the place of the principal's last one. */
    void put(Entry entry) {
        if (entries.put(entry.name, entry) == null) size = size + Math.max(1, entry.clients.size());
        quick.setRelease(place(entry.name), entry);
    }

    /** Puts a client in the place of the last one with its client-id. */
    void put(Entry entry, Client client) {
        boolean first = entry.clients.isEmpty();
        boolean added = entry.clients.put(client.clientId, client) == null;
        Client quickest = entry.first;
        if (first || quickest != null && quickest.clientId.equals(client.clientId)) entry.first = client;
        if (added && !first && entries.containsKey(entry.name)) size = size + 1;
    }

    void remove(Entry entry) {
        entries.remove(entry.name);
        quick.compareAndSet(place(entry.name), entry, null);
        size = size - Math.max(1, entry.clients.size());
    }

    void remove(Entry entry, Client client) {
        if (entry.first == client) entry.first = null;
        if (entry.clients.remove(client.clientId) != null && !entry.clients.isEmpty()) size = size - 1;
    }

    /** Calls the action with each principal; the action may remove it. */
    void forEach(Consumer<Entry> action) {
        entries.values().forEach(action);
    }
}
