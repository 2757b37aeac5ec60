package org.quotahost.table;

import java.util.AbstractMap;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Two metric tags as the map that Kafka gets, and what is kept by them: when they are in use, and the limits that were
 * made last.
 *
 * <p>The map always has the two keys user and client-id in this order, as in Kafka's own callback. Kafka names its
 * sensors by the values alone, joined by ':'; the user is sanitized and has no ':', so no two pairs share a sensor.
 */
final class Tags extends AbstractMap<String, String> {
    static final String USER = "user";
    static final String CLIENT_ID = "client-id";
    private static final String SLOWED = "<slowed";

    final String user;
    final String clientId;
    final Scope scope;
    /** Whether these are of those in the scope who write to affected topics. */
    final boolean slowed;
    final Use use;
    private final List<String> values;
    /** By quota type. Request threads race for the places; each value is complete, and right for its rule. */
    private final Limit[] limits = new Limit[QuotaTable.TYPES];

    /** A limit, boxed once for each rule, so that a fetch allocates nothing. */
    private record Limit(Rule rule, Double value) {}

    Tags(Scope scope, String user, String clientId, boolean slowed) {
        this.scope = scope;
        this.user = user;
        this.clientId = clientId;
        this.slowed = slowed;
        use = new Use(slowed);
        values = List.of(user, clientId);
    }

    /**
     * The user tag of those in a scope who are slowed. Sanitizing replaces '<' and ' ', so no real user gets one, and a
     * scope's own name in brackets stays in brackets.
     */
    static String slowedUser(String own) {
        return own.isEmpty() ? SLOWED + ">" : SLOWED + " " + own + ">";
    }

    /** The user tag of the scope that such a user tag belongs to; null for another user tag. */
    static String ownUser(String user) {
        if (!user.startsWith(SLOWED)) return null;
        return user.length() == SLOWED.length() + 1 ? "" : user.substring(SLOWED.length() + 1, user.length() - 1);
    }

    /** The limit of a quota type by a rule, null for unlimited. Any thread. */
    Double limit(int type, Rule rule, StandIns standIns) {
        Limit last = limits[type];
        return last != null && last.rule == rule ? last.value : make(type, rule, standIns);
    }

    private Double make(int type, Rule rule, StandIns standIns) {
        if (rule.usesStandIn(this, type)) standIns.ask(scope);
        Limit made = new Limit(rule, rule.limit(this, type));
        limits[type] = made;
        return made.value;
    }

    @Override
    public String get(Object key) {
        return USER.equals(key) ? user : CLIENT_ID.equals(key) ? clientId : null;
    }

    /** Kafka joins them on each request. */
    @Override
    public Collection<String> values() {
        return values;
    }

    /** In their order. Kafka copies them for each new sensor. */
    @Override
    public Set<Map.Entry<String, String>> entrySet() {
        return new LinkedHashSet<>(List.of(Map.entry(USER, user), Map.entry(CLIENT_ID, clientId)));
    }
}
