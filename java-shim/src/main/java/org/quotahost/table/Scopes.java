package org.quotahost.table;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.ObjIntConsumer;
import org.apache.kafka.common.utils.Sanitizer;

/**
 * All tags ever handed out and not yet forgotten, by their two values, and the rule that makes their limits.
 *
 * <p>find() and generation() are for request threads; all else is called under the table's lock.
 */
final class Scopes {
    static final String NEWCOMERS = "<newcomers>";
    static final String BROKER = "<broker>";
    /** Codes of QuotaTable.publish(); from GROUP on, code - GROUP is an index into the group names. */
    static final int CLIENT = 0, USER = 1, CLIENT_ID = 2, ALL = 3, NEWCOMER = 4, EXEMPT = 5, GROUP = 16;

    private final ConcurrentHashMap<String, ConcurrentHashMap<String, Tags>> byUser = new ConcurrentHashMap<>();
    private final AtomicIntegerArray generations = new AtomicIntegerArray(Tags.TYPES);
    private volatile LimitRule rule = LimitRule.DEFAULT;
    final Tags newcomers = of(NEWCOMERS, "");

    Scopes() {
        for (int type = 0; type < Tags.TYPES; type++) newcomers.hold(type); // never forgotten
    }

    /** The tags with these values, or null; values as Kafka gives them back, so both may be null. */
    Tags find(String user, String clientId) {
        if (user == null || clientId == null) return null;
        ConcurrentHashMap<String, Tags> some = byUser.get(user);
        return some == null ? null : some.get(clientId);
    }

    /** Grows when limits that Kafka may hold have changed. */
    int generation(int type) {
        return generations.get(type);
    }

    /** The tags of a client for a scope code. No real user is sanitized to a name with '<' or ' '. */
    Tags of(int code, Client client, String[] groups) {
        return switch (code) {
            case CLIENT, EXEMPT -> of(Sanitizer.sanitize(client.principal), client.clientId);
            case USER -> of(Sanitizer.sanitize(client.principal), "");
            case CLIENT_ID -> of("", client.clientId);
            case ALL -> of(BROKER, "");
            case NEWCOMER -> newcomers;
            default -> of("<group " + Sanitizer.sanitize(groups[code - GROUP]) + ">", "");
        };
    }

    private Tags of(String user, String clientId) {
        return byUser.computeIfAbsent(user, u -> new ConcurrentHashMap<>())
                .computeIfAbsent(clientId, c -> fresh(user, c));
    }

    private Tags fresh(String user, String clientId) {
        Tags tags = new Tags(user, clientId);
        for (int type = 0; newcomers != null && type < Tags.TYPES; type++) tags.stand(type, newcomers.base(type), false);
        return tags;
    }

    LimitRule rule() {
        return rule;
    }

    /** Works every limit out again, and has Kafka read again the types in which one changed. */
    void apply(LimitRule next) {
        rule = next;
        boolean[] reset = new boolean[Tags.TYPES];
        each((tags, type) -> reset[type] |= tags.refresh(type, next));
        bump(reset);
    }

    /** Gives every scope what a factor is to act on where the rate is unlimited: the measured rate, or the newcomers'. */
    void measured(int type, Map<List<String>, Double> rates, double least) {
        double unmeasured = newcomers.base(type);
        each((tags, of) -> {
            if (of != type) return;
            Double rate = rates.get(List.of(tags.user, tags.clientId));
            boolean told = rate != null && rate >= least;
            tags.stand(type, told ? rate : unmeasured, told);
        });
    }

    void bump(boolean[] reset) {
        for (int type = 0; type < Tags.TYPES; type++) if (reset[type]) generations.incrementAndGet(type);
    }

    /** Forgets tags that no client has had since before a tick. */
    void sweep(int before) {
        for (var some : byUser.values()) some.values().removeIf(tags -> tags.orphanedBefore(before));
        byUser.values().removeIf(Map::isEmpty);
    }

    int size() {
        return byUser.values().stream().mapToInt(Map::size).sum();
    }

    private void each(ObjIntConsumer<Tags> action) {
        for (var some : byUser.values()) {
            for (Tags tags : some.values()) for (int type = 0; type < Tags.TYPES; type++) action.accept(tags, type);
        }
    }
}
