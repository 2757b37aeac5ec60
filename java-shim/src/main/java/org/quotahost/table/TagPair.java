package org.quotahost.table;

import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Two metric tags as the map that Kafka gets, and the limits that go with them.
 *
 * <p>The map always has the two keys user and client-id in this order, as in Kafka's own callback. Kafka names its
 * sensors by the values alone, joined by ':'; the user is sanitized and has no ':', so no two pairs share a sensor.
 */
abstract class TagPair extends AbstractMap<String, String> {
    static final String USER = "user";
    static final String CLIENT_ID = "client-id";

    final String user;
    final String clientId;
    private final Set<Map.Entry<String, String>> entries;
    private final Collection<String> values;
    private final int hash;

    TagPair(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
        this.entries = new TwoEntries(Map.entry(USER, user), Map.entry(CLIENT_ID, clientId));
        this.values = List.of(user, clientId);
        this.hash = (USER.hashCode() ^ user.hashCode()) + (CLIENT_ID.hashCode() ^ clientId.hashCode());
    }

    /** The limit of a quota type, null for unlimited. Any thread. */
    abstract Double limit(int type);

    @Override
    public String get(Object key) {
        return USER.equals(key) ? user : CLIENT_ID.equals(key) ? clientId : null;
    }

    @Override
    public boolean containsKey(Object key) {
        return USER.equals(key) || CLIENT_ID.equals(key);
    }

    @Override
    public int size() {
        return 2;
    }

    @Override
    public Collection<String> values() {
        return values;
    }

    @Override
    public Set<Map.Entry<String, String>> entrySet() {
        return entries;
    }

    @Override
    public int hashCode() {
        return hash;
    }

    @Override
    public boolean equals(Object other) {
        return this == other || super.equals(other);
    }

    /** Two entries in their order; java.util.Set.of has no order. */
    private static final class TwoEntries extends AbstractSet<Map.Entry<String, String>> {
        private final List<Map.Entry<String, String>> list;

        TwoEntries(Map.Entry<String, String> first, Map.Entry<String, String> second) {
            this.list = List.of(first, second);
        }

        @Override
        public Iterator<Map.Entry<String, String>> iterator() {
            return list.iterator();
        }

        @Override
        public int size() {
            return list.size();
        }
    }
}
