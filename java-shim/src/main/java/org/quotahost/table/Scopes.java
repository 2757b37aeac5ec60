package org.quotahost.table;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.quotahost.table.Answer.Quota;
import org.quotahost.util.Sanitized;

/**
 * All scopes, by the two values of their tags. Any thread finds them, and the watch walks through them; all else is
 * called under the table's lock.
 *
 * <p>Sanitizing replaces '<' and ' ', so no real user gets a tag with these.
 */
final class Scopes {
    static final String EXEMPT_TAG = "<exempt>";
    /** Codes of scopes in an Answer. */
    static final int CLIENT = 0, USER = 1, CLIENT_ID = 2, ALL = 3, NEWCOMER = 4, EXEMPT = 5, GROUP = 16;

    private static final String NEWCOMERS = "<newcomers";
    private static final int QUICK = 1 << 17;

    /** By texts alone, since Java arranges these as a tree where many have one hash: a client-id may be chosen to collide. */
    private final ConcurrentHashMap<String, ConcurrentHashMap<String, Scope>> byUser = new ConcurrentHashMap<>();
    /** Most of the own tags by hash, each alone in its place: when limits change, Kafka asks for all of them at once. */
    private final AtomicReferenceArray<Tags> quick = new AtomicReferenceArray<>(QUICK);
    /** By quota type, whether somebody reads what Kafka measures for clients without a quota. */
    private boolean[] measured = new boolean[QuotaTable.TYPES];
    final Scope newcomers = of(NEWCOMERS + ">", "");
    /** Of all who have no quota of a type that is not measured. */
    final Scope unlimited = of("<unlimited>", "");
    final Scope exempt = of(EXEMPT_TAG, "");

    /** Whether a scope is always there, and no client's answer gives it a rate. */
    boolean isPermanent(Scope scope) {
        return scope == newcomers || scope == unlimited || scope == exempt;
    }

    void measured(boolean[] types) {
        measured = types;
    }

    /**
     * The tags with these values, the slowed ones too, or null. Kafka hands the values back in a map of its own, so both
     * may be null.
     */
    Tags find(String user, String clientId) {
        if (user == null || clientId == null) return null;
        Tags tags = quick.getAcquire(place(user, clientId));
        if (tags != null && tags.user.equals(user) && tags.clientId.equals(clientId)) return tags;
        String group = Tags.group(user);
        Map<String, Scope> ofUser = byUser.get(group == null ? user : Tags.ownUser(user, group));
        Scope scope = ofUser == null ? null : ofUser.get(clientId);
        return scope == null ? null : group == null ? scope.own : scope.slowed(group);
    }

    /** The scope of an answer that is the same for all client-ids of a user (sanitized), or null if it depends on them. */
    Scope shared(Quota quota, int type, String user) {
        if (quota.code() == EXEMPT) return exempt;
        if (Double.isNaN(quota.rate()) && !measured[type]) return unlimited;
        return switch (quota.code()) {
            case CLIENT, CLIENT_ID, NEWCOMER -> null;
            case USER -> of(user, "");
            case ALL -> of("<broker>", "");
            default -> of("<group " + Sanitized.tag(quota.group()) + ">", "");
        };
    }

    /** The scope of one client for an answer that is no newcomer's. */
    Scope of(Quota quota, int type, String user, String clientId) {
        Scope shared = shared(quota, type, user);
        return shared != null ? shared : of(quota.code() == CLIENT ? user : "", clientId);
    }

    /** What the unknown client-ids of one user share. */
    Scope newcomersOf(String user) {
        return of(NEWCOMERS + " " + user + ">", "");
    }

    /** Whether clients have this scope because they are not known. */
    static boolean isOfNewcomers(Scope scope) {
        return scope.own.user.startsWith(NEWCOMERS);
    }

    private Scope of(String user, String clientId) {
        return byUser.computeIfAbsent(user, u -> new ConcurrentHashMap<>(1)).computeIfAbsent(clientId, c -> {
            Scope made = new Scope(user, c, user.equals(EXEMPT_TAG));
            quick.setRelease(place(user, c), made.own);
            return made;
        });
    }

    private static int place(String user, String clientId) {
        int hash = 31 * user.hashCode() + clientId.hashCode();
        return (hash ^ hash >>> 17) & QUICK - 1;
    }

    /** Forgets the scopes in which nobody was since a beat, but for those that somebody still has; and slowed tags. */
    void sweep(int before, Set<Scope> had) {
        for (var ofUser : byUser.values()) {
            ofUser.values().removeIf(scope -> {
                scope.forgetSlowed(before);
                boolean stays = isPermanent(scope) || had.contains(scope) || scope.wasHad() && scope.seen() - before >= 0;
                if (!stays) quick.compareAndSet(place(scope.own.user, scope.own.clientId), scope.own, null);
                return !stays;
            });
        }
        byUser.values().removeIf(Map::isEmpty);
    }

    void forEach(Consumer<Scope> action) {
        byUser.values().forEach(ofUser -> ofUser.values().forEach(action));
    }
}
