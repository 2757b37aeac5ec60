package org.quotahost.table;

import java.util.Objects;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.inbox.Batch;

/**
 * Takes the host's answers over into what the table remembers; all of it under the table's lock.
 *
 * <p>The principal comes first. What an answer says of all its client-ids is kept with the principal, once. A client
 * is kept by its client-id only where that matters: where some type's tags depend on it, or where it is one of the
 * distinct ones. Nothing is made for a principal or client for which there is no place.
 */
final class Publication {
    /** For so many beats unknown client-ids keep the tags that their whole principal had, 5 s. */
    private static final int FORMER_BEATS = 25;

    private final Scopes scopes;
    private final Remembered remembered;
    private final int now;
    /** Whether the table forgets sooner than Kafka, which then may have sensors for tags that look unused. */
    private final boolean forgetsSooner;
    /** By quota type, whether Kafka has to read its limits again. */
    private final boolean[] reset = new boolean[Tags.TYPES];

    Publication(Scopes scopes, Remembered remembered, int now, boolean forgetsSooner) {
        this.scopes = scopes;
        this.remembered = remembered;
        this.now = now;
        this.forgetsSooner = forgetsSooner;
    }

    boolean[] reset() {
        return reset;
    }

    /** Stores one answer. Answers whether tags or a limit have changed by it, for the principal or the client. */
    boolean store(Batch.Lookup lookup, Answers.Answer answer) {
        Principal known = remembered.principal(lookup.principal());
        if (tooLong(lookup) || known == null && (remembered.isFull() || lookup.ofPrincipal())) return false;
        Principal principal = known != null ? known : stranger(lookup);
        boolean changed = known == null;
        if (answer.isOfPrincipal(lookup.clientId())) {
            changed |= storeWhole(principal, lookup, answer);
        } else {
            if (known == null) replace(principal, unknown(principal));
            if (answer.failed()) principal.unresolved = true;
            else noteDistinct(principal, lookup, answer);
        }
        changed |= storeClient(principal, lookup, answer);
        if (known == null) remembered.add(principal);
        return changed;
    }

    private static boolean tooLong(Batch.Lookup lookup) {
        return !Names.keepsPrincipal(lookup.principal()) || !Names.keeps(lookup.clientId());
    }

    private Principal stranger(Batch.Lookup lookup) {
        Principal principal = new Principal(lookup.principal(), lookup.clientId(), now);
        replace(principal, scopes.nothing);
        return principal;
    }

    /** Of a principal of which nothing is known but its name: all its client-ids share newcomers' tags of its own. */
    private Whole unknown(Principal principal) {
        Tags[] unknown = new Tags[Tags.TYPES];
        for (int type = 0; type < Tags.TYPES; type++) unknown[type] = newcomers(principal, type, null);
        return new Whole(new Tags[Tags.TYPES], unknown, false, false, ClientIds.NONE, new String[Tags.TYPES]);
    }

    /**
     * The tags of a principal's unknown client-ids. They have the newcomers' rate, or the rate that each of them will
     * have if that is known and larger: many that are new at once must not be muted for a rate that is meant for one.
     */
    private Tags newcomers(Principal principal, int type, Answers.Answer answer) {
        double own = answer == null || answer.distinctIds() == null ? 0 : answer.rate(type); // NaN is unlimited
        return rated(scopes.newcomersOf(principal.user), type, Math.max(own, scopes.newcomers.base(type)));
    }

    // ---- what holds for a principal ----------------------------------------------------------------------------

    private boolean storeWhole(Principal principal, Batch.Lookup lookup, Answers.Answer answer) {
        Whole old = principal.whole();
        Tags[] tags = new Tags[Tags.TYPES];
        Tags[] unknown = new Tags[Tags.TYPES];
        String[] suppliers = new String[Tags.TYPES];
        ClientIds distinct = answer.distinctIds();
        boolean changed = false;
        for (int type = 0; type < Tags.TYPES; type++) {
            Tags shared = distinct == null ? null : scopes.shared(answer.code(type), answer.rate(type), type,
                    principal.user, answer.groups());
            changed |= shared != old.tags()[type];
            if (shared != null) {
                changed |= rate(shared, type, answer);
                suppliers[type] = answer.supplier(type);
                tags[type] = unknown[type] = shared;
            } else {
                unknown[type] = former(principal, old, type, answer);
            }
        }
        ClientIds ids = distinct == null ? ClientIds.NONE : distinct;
        boolean other = changed || !ids.isSame(old.distinct());
        // The host is asked again by a client-id that is like the others, and not by an exempt one that came first.
        if (!old.answered() || ids.contains(principal.sample)) principal.sample = lookup.clientId();
        principal.unresolved = false;
        principal.would = answer.would();
        replace(principal, new Whole(tags, unknown, true, distinct != null, ids, suppliers));
        if (other) forgetNeedless(principal);
        return changed;
    }

    /** What unknown client-ids have from now on, though the answer depends on the client-id: for a while, what all had. */
    private Tags former(Principal principal, Whole old, int type, Answers.Answer answer) {
        if (old.tags()[type] != null) remembered.keepFormer(principal, now + FORMER_BEATS);
        Tags before = old.unknown()[type];
        boolean stays = !Scopes.isOfNewcomers(before) && now - principal.formerUntil < 0;
        return stays ? before : newcomers(principal, type, answer);
    }

    /**
     * A client-id may be distinct that was not before: then nothing is known of the others until one of them is
     * answered, and they keep what they had.
     */
    private void noteDistinct(Principal principal, Batch.Lookup lookup, Answers.Answer answer) {
        Whole old = principal.whole();
        boolean blank = principal.sample.equals(lookup.clientId()) && old.answered();
        ClientIds distinct = answer.distinctIds() != null ? answer.distinctIds() : old.distinct();
        if (blank) principal.would = null;
        if (!blank && distinct.isSame(old.distinct())) return;
        Tags[] tags = blank ? new Tags[Tags.TYPES] : old.tags();
        String[] suppliers = blank ? new String[Tags.TYPES] : old.suppliers();
        replace(principal, new Whole(tags, old.unknown(), !blank && old.answered(), old.alike(), distinct, suppliers));
    }

    /** Puts another answer in the place of a principal's, and gives up the tags that only the old one had. */
    private void replace(Principal principal, Whole next) {
        Whole old = principal.whole();
        for (int type = 0; type < Tags.TYPES; type++) {
            join(next.unknown()[type], next, old, type);
            if (next.tags()[type] != next.unknown()[type]) join(next.tags()[type], next, old, type);
        }
        principal.whole(next);
        for (int type = 0; old != null && type < Tags.TYPES; type++) {
            leave(old.unknown()[type], next, type);
            if (old.tags()[type] != old.unknown()[type]) leave(old.tags()[type], next, type);
        }
    }

    private static void join(Tags tags, Whole next, Whole old, int type) {
        if (tags != null && (old == null || !old.has(type, tags))) tags.join(type);
    }

    private void leave(Tags tags, Whole next, int type) {
        if (tags != null && !next.has(type, tags)) reset[type] |= tags.leave(type, now);
    }

    // ---- one client --------------------------------------------------------------------------------------------

    private boolean storeClient(Principal principal, Batch.Lookup lookup, Answers.Answer answer) {
        String clientId = lookup.clientId();
        Client old = principal.clients.get(clientId);
        if (!needs(principal, clientId)) {
            if (old != null) forget(principal, old);
            return old != null;
        }
        if (old == null && (lookup.ofPrincipal() || !remembered.hasPlaceFor(principal))) return false;
        Client client = old != null ? old : new Client(principal, clientId, now);
        boolean changed = assign(principal, client, answer);
        if (old == null) remembered.add(principal, client);
        return changed || old == null;
    }

    private boolean assign(Principal principal, Client client, Answers.Answer answer) {
        Tags[] next = new Tags[Tags.TYPES];
        String[] suppliers = new String[Tags.TYPES];
        boolean changed = false;
        client.unresolved = answer.failed();
        client.would = answer.would();
        for (int type = 0; type < Tags.TYPES; type++) {
            Tags from = client.tags(type);
            boolean keeps = answer.code(type) == Scopes.NEWCOMER && from != null;
            // After a failure a client keeps the quota that it has; a client that has none is a newcomer.
            next[type] = keeps ? from : scopes.of(answer.code(type), answer.rate(type), type, client, answer.groups(),
                    principal.whole().unknown()[type]);
            suppliers[type] = keeps && !Scopes.isOfNewcomers(from) ? client.suppliers[type] : answer.supplier(type);
            changed |= move(from, next[type], type, answer);
        }
        client.tags(next);
        client.suppliers = suppliers;
        return changed;
    }

    /** Gives a client its tags for one type, and the tags their rate. Answers whether tags or limit have changed. */
    private boolean move(Tags from, Tags to, int type, Answers.Answer answer) {
        boolean differs = answer.code(type) != Scopes.NEWCOMER && rate(to, type, answer);
        if (from == to) return differs;
        to.join(type);
        if (from != null) reset[type] |= from.leave(type, now);
        return true;
    }

    /** Whether a client-id of a principal needs anything of its own. */
    private static boolean needs(Principal principal, String clientId) {
        Whole whole = principal.whole();
        return !whole.complete() || principal.distinguishes(whole, byName(principal.name), clientId);
    }

    static KafkaPrincipal byName(String name) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, name);
    }

    private void forgetNeedless(Principal principal) {
        if (!principal.whole().complete()) return;
        for (Client client : principal.clients.values()) {
            if (!needs(principal, client.clientId)) forget(principal, client);
        }
    }

    private void forget(Principal principal, Client client) {
        remembered.remove(principal, client);
        for (int type = 0; type < Tags.TYPES; type++) reset[type] |= client.tags(type).leave(type, now);
    }

    // ---- rates -------------------------------------------------------------------------------------------------

    private boolean rate(Tags tags, int type, Answers.Answer answer) {
        if (scopes.isPermanent(tags)) return false;
        Double before = tags.limit(type);
        rated(tags, type, answer.rate(type));
        return !Objects.equals(before, tags.limit(type));
    }

    private Tags rated(Tags tags, int type, double rate) {
        boolean unused = !tags.used(type);
        boolean differs = tags.set(type, rate, false, scopes.rule());
        // Kafka has no sensor for tags that no client has had, unless the table forgets sooner than Kafka does.
        reset[type] |= unused ? forgetsSooner : differs;
        return tags;
    }
}
