package org.quotahost.table;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.table.Answer.Quota;
import org.quotahost.util.Names;

/**
 * All scopes, by the two values of their tags. Any thread finds them, and adds slowed tags; the watch walks through them;
 * all else is called under the table's lock.
 *
 * <p>Sanitizing replaces '<' and ' ', so no real user gets a tag with these.
 */
final class Scopes {
    /** Codes of scopes in an Answer. */
    static final int CLIENT = 0, USER = 1, CLIENT_ID = 2, ALL = 3, NEWCOMER = 4, GROUP = 16;

    private static final String NEWCOMERS = "<newcomers";

    /**
     * Own tags and slowed ones. By texts alone, since Java arranges these as a tree where many have one hash: a client-id may
     * be chosen to collide. A user with one of them, as most are, has a map of one, which takes less of the heap and is read sooner.
     */
    private final ConcurrentHashMap<String, Map<String, Tags>> byUser = new ConcurrentHashMap<>();
    /** By quota type, whether somebody reads what Kafka measures for clients without a quota. */
    boolean[] measured = new boolean[QuotaTable.TYPES];
    final Scope newcomers = of(NEWCOMERS + ">", "");
    /** Of all who have no quota of a type that is not measured. */
    final Scope unlimited = of("<unlimited>", "");
    final Scope exempt = of("<exempt>", "");
    /** Of the request quota of a request that was turned back and is to be muted (Mute). */
    final Scope turnedBack = of("<turned back>", "");

    Scopes() {
        turnedBack.base(ClientQuotaType.REQUEST.ordinal(), 1e-9); // percent of a thread's time; Kafka takes no limit of 0
    }

    /** Whether a scope is always there, and no client's answer gives it a rate. */
    boolean isPermanent(Scope scope) {
        return scope == newcomers || scope == unlimited || scope == exempt || scope == turnedBack;
    }

    /**
     * The tags with these values, the slowed ones too, or null. Kafka hands the values back in a map of its own, so both
     * may be null.
     */
    Tags find(String user, String clientId) {
        Map<String, Tags> ofUser = user == null || clientId == null ? null : byUser.get(user);
        return ofUser == null ? null : ofUser.get(clientId);
    }

    /** The scope of an answer that is the same for all client-ids of a user (sanitized), or null if it depends on them. */
    Scope shared(Quota quota, int type, String user) {
        if (Double.isNaN(quota.rate()) && !measured[type]) return unlimited;
        return switch (quota.code()) {
            case CLIENT, CLIENT_ID, NEWCOMER -> null;
            case USER -> of(user, "");
            case ALL -> of("<broker>", "");
            default -> of("<group " + Names.tag(quota.group()) + ">", "");
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
        Tags known = find(user, clientId);
        return known != null ? known.scope : add(new Scope(this, user, clientId).own).scope;
    }

    /** Any thread: from now on these tags are found by their values. */
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
        byUser.computeIfPresent(tags.user, (user, ofUser) -> {
            if (ofUser.size() > 1) ofUser.remove(tags.clientId);
            else if (ofUser.containsKey(tags.clientId)) return null;
            return ofUser;
        });
    }

    /** Forgets the scopes in which nobody was since a beat, but for those that somebody still has; and slowed tags. */
    void sweep(int before, Set<Scope> had) {
        forEach(scope -> {
            scope.forgetSlowed(before);
            boolean stays = isPermanent(scope) || had.contains(scope) || scope.wasHad() && scope.seen() - before >= 0;
            if (!stays) remove(scope.own);
        });
    }

    void forEach(Consumer<Scope> action) {
        byUser.values().forEach(ofUser -> ofUser.values().forEach(tags -> {
            if (tags == tags.scope.own) action.accept(tags.scope);
        }));
    }
}
