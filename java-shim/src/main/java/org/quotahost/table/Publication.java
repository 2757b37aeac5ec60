package org.quotahost.table;

import java.util.Arrays;
import java.util.Set;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.table.Answer.Quota;
import org.quotahost.table.Principals.Entry;
import org.quotahost.table.Principals.TagHolder;

/**
 * One publication of the host's answers into the table, under the table's lock: it stores what an answer says of all client-ids
 * of a principal with the principal, chooses what unknown client-ids share, and stores nothing for clients without a place.
 */
final class Publication {
    /** Unknown client-ids keep the former scope of their whole principal for so many beats, 5 s. */
    private static final int FORMER_BEATS = (int) (5_000 / QuotaTable.BEAT_MS);

    private final Scopes scopes;
    private final Principals principals;
    private final int now;
    /** Whether the table may have forgotten scopes for which Kafka still has sensors. */
    private final boolean kafkaKeepsLonger;
    /** A bit for each quota type with a changed base rate from which Kafka may have a limit. */
    int changed;

    Publication(QuotaTable table, boolean kafkaKeepsLonger) {
        scopes = table.scopes;
        principals = table.principals;
        now = table.now;
        this.kafkaKeepsLonger = kafkaKeepsLonger;
    }

    /**
     * Stores one answer, and returns whether it has changed a scope or a rate. Request threads read meanwhile, so a client's
     * own tags are stored before the entry that needs them, and removed after the entry that does not. Otherwise a known client
     * would be a newcomer for a moment, with one of the newcomers' sensors.
     */
    boolean store(Batch.Lookup lookup, Answer answer) {
        String name = lookup.principal(), clientId = lookup.clientId();
        Entry old = principals.entry(name);
        if (old == null && principals.isFull()) return false;
        Scope[] none = new Scope[QuotaTable.TYPES];
        Entry before = old != null ? old : new Entry(name, null, now, none, scopes.newcomers, none, 0, Set.of(),
                clientId, Answer.NONE, false);
        boolean isAlone = answer.failed() || answer.distinct().contains(clientId);
        Entry next = isAlone ? alone(before, lookup, answer) : whole(before, lookup, answer);
        boolean differs = false;
        if (next.answer == answer) {
            differs = !Arrays.equals(before.all, next.all);
            for (int type = 0; type < QuotaTable.TYPES; type++) {
                if (next.all[type] != null) differs |= rate(next.all[type], type, answer.quotas()[type].rate());
            }
        }
        boolean needed = next.needs(clientId);
        boolean leaves = !needed && next.clients.containsKey(clientId);
        boolean othersLeave = next.answer == answer && (differs || !next.distinct.equals(before.distinct));
        if (needed) differs |= storeClient(next, clientId, answer);
        principals.put(next);
        if (leaves || othersLeave) forgetNeedless(next);
        return differs || leaves || old == null;
    }

    /** Makes the entry after an answer for all client-ids of the principal except the distinct ones. */
    private Entry whole(Entry before, Batch.Lookup lookup, Answer answer) {
        Scope[] all = new Scope[QuotaTable.TYPES];
        double[] rates = new double[QuotaTable.TYPES];
        for (int type = 0; type < all.length && answer.alike(); type++) {
            all[type] = scopes.shared(answer.quotas()[type], type, before.user);
            rates[type] = answer.quotas()[type].rate();
        }
        // The host is asked again with a client-id that is like the others, not with a distinct one that came first.
        boolean asksByThis = !before.answered() || answer.distinct().contains(before.sample());
        String sample = asksByThis ? lookup.clientId() : before.sample();
        return entry(before, all, rates, answer.distinct(), sample, answer, false);
    }

    /**
     * Makes the entry after an answer for one client, whose client-id may have become distinct. If the host was asked for the
     * others with this very client-id, nothing is known of the others until one of them is answered.
     */
    private Entry alone(Entry before, Batch.Lookup lookup, Answer answer) {
        boolean failed = answer.failed();
        boolean blank = !failed && before.answered() && before.sample().equals(lookup.clientId());
        return entry(before, blank ? new Scope[QuotaTable.TYPES] : before.all, null,
                failed ? before.distinct : answer.distinct(), before.sample(), blank ? Answer.NONE : before.answer,
                failed || before.failed);
    }

    /**
     * Makes a principal's next entry. If the answer now depends on the client-id, client-ids keep the principal's former scope
     * until each is known (FORMER_BEATS at most). Rates are for each unknown client-id; null if the answer does not say.
     */
    private Entry entry(Entry before, Scope[] all, double[] rates, Set<String> distinct, String sample, Answer answer,
            boolean failed) {
        Scope newcomers = before.newcomers;
        boolean dependsAnew = false;
        for (int type = 0; type < all.length; type++) {
            if (all[type] != null) continue;
            dependsAnew |= before.all[type] != null;
            boolean isNew = before.all[type] != null || !before.answered();
            if (rates != null || isNew) newcomers = newcomers(before.user, type, rates == null ? 0 : rates[type]);
        }
        return new Entry(before.principal, before, now, all, newcomers, dependsAnew ? before.all : before.former,
                dependsAnew ? now + FORMER_BEATS : before.formerUntil, distinct, sample, answer, failed);
    }

    /**
     * Returns the scope of a principal's unknown client-ids, with the newcomers' rate, or with the rate that each of them will
     * have if that is known and larger: many new clients together must not be muted for a rate that is meant for one.
     */
    private Scope newcomers(String user, int type, double own) {
        Scope scope = scopes.newcomersOf(user);
        rate(scope, type, Math.max(own, scopes.newcomers.base(type))); // NaN, which is unlimited, wins
        return scope;
    }

    /** Stores a client if there is a place. Returns whether this has changed a scope or a rate. */
    private boolean storeClient(Entry entry, String clientId, Answer answer) {
        TagHolder old = entry.clients.get(clientId);
        if (old == null && !principals.hasPlaceFor(entry)) return false;
        Scope[] next = new Scope[QuotaTable.TYPES];
        Quota[] quotas = answer.quotas().clone();
        boolean differs = old == null;
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            boolean failed = quotas[type].code() == Scopes.NEWCOMER;
            // After a failure a client keeps its scope; a client without a scope is a newcomer.
            next[type] = !failed ? scopes.of(quotas[type], type, entry.user, clientId)
                    : old != null ? old.tags(type).scope : entry.unknown(type, now);
            if (!failed) differs |= rate(next[type], type, quotas[type].rate());
            else if (old != null && !Scopes.isOfNewcomers(next[type])) quotas[type] = old.answer.quotas()[type];
            differs |= old == null || old.tags(type).scope != next[type];
        }
        Answer told = answer.failed() && old != null ? new Answer(quotas, answer.alike(), answer.distinct(), "") : answer;
        principals.put(entry, new TagHolder(entry.principal, clientId, next, told, answer.failed(), old, now));
        return differs;
    }

    /** Removes clients that had something of their own and now have what all client-ids of the principal have. */
    private void forgetNeedless(Entry entry) {
        for (TagHolder client : entry.clients.values()) {
            if (!entry.needs(client.clientId)) principals.remove(entry, client);
        }
    }

    /** Sets a scope's base rate. Returns whether the rate has changed. */
    private boolean rate(Scope scope, int type, double rate) {
        if (scopes.permanent.contains(scope)) return false;
        boolean differs = scope.base(type, rate);
        // Kafka has no sensor for tags that no client has had, unless it has kept a sensor that the table forgot.
        if (scope.wasHad() ? differs : kafkaKeepsLonger) changed |= 1 << type;
        return differs;
    }
}
