package org.quotahost.table;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.table.Answer.Quota;
import org.quotahost.util.Names;

/**
 * All scopes, by the two values of their tags. Any thread finds scopes and adds slowed tags, the watch walks through all
 * scopes, and the other methods are called under the table's lock.
 *
 * <p>Sanitizing replaces '<' and ' ', so no real user gets a tag that contains them.
 */
final class Scopes {
    /** The codes of scopes in an Answer. */
    static final int CLIENT = 0, USER = 1, CLIENT_ID = 2, ALL = 3, NEWCOMER = 4, GROUP = 16;

    private static final String NEWCOMERS = "<newcomers";

    /**
     * Own and slowed tags by their texts: Java's maps make a tree of comparable keys with the same hash, and client-ids may be
     * chosen to collide. Most users have one pair of tags, in a map of one entry, which takes less heap and is faster to read.
     */
    private final ConcurrentHashMap<String, Map<String, Tags>> byUser = new ConcurrentHashMap<>();
    /** The quota types for which somebody reads Kafka's measurements of clients without a quota. */
    Set<ClientQuotaType> measured = Set.of();
    final Scope newcomers = of(NEWCOMERS + ">", "");
    /** The scope of all clients without a quota of a type that is not measured. */
    final Scope unlimited = of("<unlimited>", "");
    final Scope exempt = of("<exempt>", "");
    /** The scope for the request quota of a request that was turned back and must be muted (Mute). */
    final Scope turnedBack = of("<turned back>", "");
    /** The scopes that always exist, and whose rates no client's answer sets. */
    final Set<Scope> permanent = Set.of(newcomers, unlimited, exempt, turnedBack);

    /** The tags that Kafka's walk found last, by quota type. */
    private final Tags[] last = {newcomers.own, newcomers.own, newcomers.own, newcomers.own};

    Scopes() {
        turnedBack.base(ClientQuotaType.REQUEST.ordinal(), 1e-9); // percent of a thread's time; Kafka rejects a limit of 0
    }

    /**
     * Returns the tags that Kafka passes as a copy, which may lack values, or null. Kafka does so for each of its sensors when
     * limits have changed, in the same order each time, so the tags that followed last time are tried first: with 50,000 clients
     * the maps would take a third of this walk. The copy has our tags' own texts. Two walks at once only spoil the order.
     */
    Tags next(int type, String user, String clientId) {
        Tags[] followers = last[type].next;
        Tags tags = followers == null ? null : followers[type];
        if (tags == null || tags.user != user || tags.clientId != clientId || tags.next == null) {
            tags = find(user, clientId);
            if (followers != null) followers[type] = tags;
        }
        if (tags != null) last[type] = tags;
        return tags;
    }

    /** Returns the own or slowed tags with these values, or null. */
    Tags find(String user, String clientId) {
        Map<String, Tags> ofUser = user == null || clientId == null ? null : byUser.get(user);
        return ofUser == null ? null : ofUser.get(clientId);
    }

    /** Returns the scope of an answer that is the same for all client-ids of a (sanitized) user, or null if it depends on them. */
    Scope shared(Quota quota, int type, String user) {
        if (Double.isNaN(quota.rate()) && !measured.contains(ClientQuotaType.values()[type])) return unlimited;
        return switch (quota.code()) {
            case CLIENT, CLIENT_ID, NEWCOMER -> null;
            case USER -> of(user, "");
            case ALL -> of("<broker>", "");
            default -> of("<group " + Names.tag(quota.group()) + ">", "");
        };
    }

    /** Returns the scope of one client for an answer that is not NEWCOMER. */
    Scope of(Quota quota, int type, String user, String clientId) {
        Scope shared = shared(quota, type, user);
        return shared != null ? shared : of(quota.code() == CLIENT ? user : "", clientId);
    }

    /** Returns the scope that the unknown client-ids of one user share. */
    Scope newcomersOf(String user) {
        return of(NEWCOMERS + " " + user + ">", "");
    }

    /** Returns whether clients have this scope because they are not known. */
    static boolean isOfNewcomers(Scope scope) {
        return scope.own.user.startsWith(NEWCOMERS);
    }

    private Scope of(String user, String clientId) {
        Tags known = find(user, clientId);
        return known != null ? known.scope : add(new Scope(this, user, clientId).own).scope;
    }

    /** Adds tags, which are found by their values from now on. Any thread may call this. */
    Tags add(Tags made) {
        byUser.compute(made.user, (user, before) -> {
            if (before == null) return Map.of(made.clientId, made);
            Map<String, Tags> ofUser = before instanceof ConcurrentHashMap ? before : new ConcurrentHashMap<>(before);
            ofUser.put(made.clientId, made);
            return ofUser;
        });
        return made;
    }

    void remove(Tags tags) {
        tags.next = null;
        byUser.computeIfPresent(tags.user, (user, ofUser) -> {
            if (ofUser.size() > 1) ofUser.remove(tags.clientId);
            else if (ofUser.containsKey(tags.clientId)) return null;
            return ofUser;
        });
    }

    /** Forgets scopes that no client has used since a beat, except those that a client still has; and unused slowed tags. */
    void sweep(int before, Set<Scope> had) {
        forEach(scope -> {
            scope.forgetSlowed(before);
            boolean stays = permanent.contains(scope) || had.contains(scope) || scope.wasHad() && scope.seen() - before >= 0;
            if (!stays) remove(scope.own);
        });
    }

    void forEach(Consumer<Scope> action) {
        byUser.values().forEach(ofUser -> ofUser.values().forEach(tags -> {
            if (tags == tags.scope.own) action.accept(tags.scope);
        }));
    }
}
