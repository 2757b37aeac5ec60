package org.quotahost.table;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * One pair of tags that Kafka measures for one quota type, and what suppliers in shadow would give those who have it.
 *
 * <p>What Kafka measures for the tags belongs to one scope of a supplier in shadow only if all who have the tags would be
 * in that scope; otherwise nobody knows who used how much of it. Made under the table's lock.
 */
final class ShadowedUse {
    final ClientQuotaType type;
    final Tags tags;
    final double base;
    final double standIn;
    /** The supplier in force, "" for none. */
    final String supplier;
    /** Whether all who have the tags write to affected topics. */
    boolean marked = true;
    /** Whether all who have the tags pass a closed fence. */
    boolean passesFence = true;
    private final Map<WouldBe.Scope, WouldBe> scopes = new HashMap<>(2);
    /** Some who have the tags would be in no scope, or in one of each client-id. */
    private boolean mixed;

    /** By what a scope of a supplier in shadow is found again. */
    record Key(int type, WouldBe.Scope scope) {}

    /** What is measured of all tags whose clients would be in one scope. */
    static final class Sum {
        final WouldBe would;
        final List<ShadowedUse> uses = new ArrayList<>(1);
        double rate;
        boolean measured = true;

        Sum(WouldBe would) {
            this.would = would;
        }
    }

    ShadowedUse(ClientQuotaType type, Tags tags, String source) {
        this.type = type;
        this.tags = tags;
        // A newcomer's rate is no supplier's, and the exempt have none.
        int at = type.ordinal();
        this.base = tags.exempt(at) ? Double.NaN : tags.base(at);
        this.standIn = tags.standIn(at);
        this.supplier = source == null || tags.exempt(at) || Scopes.isOfNewcomers(tags) ? "" : source.split("\t", 2)[0];
        if (tags.exempt(at)) marked = false;
    }

    /** One client has the tags. */
    void add(WouldBe[] would, String user, String clientId) {
        WouldBe one = would == null ? null : would[type.ordinal()];
        if (one == null) mixed = true;
        else scopes.put(one.scope(user, clientId), one);
    }

    /** All client-ids of a principal have the tags. */
    void add(WouldBe[] would, String user) {
        WouldBe one = would == null ? null : would[type.ordinal()];
        mixed |= one == null || one.isOfClientId();
        if (one != null) scopes.put(one.scope(user, null), one);
    }

    /** Whether suppliers in shadow would give anything. */
    boolean would() {
        return !scopes.isEmpty();
    }

    /** Adds what Kafka measures for the tags to the scope to which it belongs. */
    void addTo(Map<Key, Sum> sums, double measured) {
        boolean one = scopes.size() == 1 && !mixed;
        scopes.forEach((scope, would) -> {
            Sum sum = sums.computeIfAbsent(new Key(type.ordinal(), scope), any -> new Sum(would));
            sum.uses.add(this);
            sum.measured &= one;
            sum.rate += measured;
        });
    }
}
