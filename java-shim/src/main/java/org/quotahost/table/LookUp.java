package org.quotahost.table;

import java.util.Map;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Inbox;

/**
 * Finds the tags of a request's client, on its request thread: the principal first, the client-id only where it matters.
 *
 * <p>It only reads, but for the beats at which somebody was last seen, and posts whom the table doesn't know.
 */
final class LookUp {
    private final Scopes scopes;
    private final Remembered remembered;
    private final Inbox inbox;
    private final QuotaTable.Counters counters;
    /** Null while no factor is for some clients only. */
    private volatile Slowing slowing;
    /** The table's clock, in beats since the start. */
    private volatile int now;

    LookUp(Scopes scopes, Remembered remembered, Inbox inbox, QuotaTable.Counters counters) {
        this.scopes = scopes;
        this.remembered = remembered;
        this.inbox = inbox;
        this.counters = counters;
    }

    /** The tags of a client for a quota type (ClientQuotaCallback.quotaMetricTags). */
    Map<String, String> tags(int type, KafkaPrincipal principal, String clientId) {
        Tags own = own(type, principal, clientId);
        Slowing now = slowing;
        return now == null ? own : now.tags(own, type, principal, clientId);
    }

    /** The tags of the client's scope. */
    private Tags own(int type, KafkaPrincipal principal, String clientId) {
        Principal known = remembered.principal(principal.getName());
        if (known == null) return stranger(principal, clientId);
        Tags plain = known.tags(type);
        if (plain != null) {
            known.see(type, now);
            return plain != scopes.exempt || isUser(principal) ? plain : scopes.newcomers;
        }
        // Most users have one client; it is in the table only if it has something of its own (docs/benchmarks.md).
        Client first = known.first;
        if (first != null && first.clientId.equals(clientId)) {
            first.see(type, now);
            return first.tags(type);
        }
        Whole whole = known.whole();
        // A client that needs tags of one type alone is posted by its first request of any type: most produce later.
        if (whole.complete() && !known.distinguishes(whole, principal, clientId)) {
            known.see(type, now);
            return whole.tags()[type];
        }
        Client client = known.client(clientId);
        if (client == null) return unknown(type, known, whole, principal, clientId);
        client.see(type, now);
        return client.tags(type);
    }

    /** The host knows names alone, but only a name of this type exempts (Exemptions). */
    private static boolean isUser(KafkaPrincipal principal) {
        return principal.getPrincipalType().equals(KafkaPrincipal.USER_TYPE);
    }

    /** The tags of a principal that is not in the table. Its first client-id, shortened if need be, tells what it has. */
    private Tags stranger(KafkaPrincipal principal, String clientId) {
        counters.misses.increment();
        if (remembered.isFull()) counters.unadmitted.increment();
        else if (Names.keepsPrincipal(principal.getName())) {
            inbox.postClient(principal.getName(), Names.shortened(clientId));
        }
        return Fence.exempt(principal, clientId) ? scopes.exempt : scopes.newcomers;
    }

    /** The tags of an unknown client-id of a known principal: never those that other principals share with it. */
    private Tags unknown(int type, Principal known, Whole whole, KafkaPrincipal principal, String clientId) {
        known.see(type, now);
        counters.misses.increment();
        // Without a place for the client, the answer for its principal is still to be had.
        boolean asks = !whole.answered() || remembered.hasPlaceFor(known);
        if (!asks) counters.unadmitted.increment();
        else if (Names.keeps(clientId)) inbox.postClient(known.name, clientId);
        return Fence.exempt(principal, clientId) ? scopes.exempt : whole.unknown()[type];
    }

    /** Has the host answer for a principal once more. */
    void ask(Principal principal) {
        inbox.postClient(principal.name, principal.sample);
    }

    /** From now on some clients have their scope's twin; with null none. */
    void slow(Slowing some) {
        slowing = some;
    }

    int now() {
        return now;
    }

    /** Moves the table's clock. */
    void now(int beat) {
        now = beat;
    }
}
