package org.quotahost.table;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.ObjIntConsumer;
import org.quotahost.util.Sanitized;

/**
 * All tags that the table has handed out and not yet forgotten, by their two values, and the rule that makes their
 * limits.
 *
 * <p>A scope is the set of clients that share one pair of tags, and so one sensor of Kafka's and one limit. Request
 * threads call find() and generation(); all else is called under the table's lock.
 */
final class Scopes {
    static final String NEWCOMERS = "<newcomers>";
    static final String BROKER = "<broker>";
    static final String UNLIMITED = "<unlimited>";
    static final String EXEMPTED = "<exempt>";
    /** Codes of scopes in QuotaTable.publish(); from GROUP on, code - GROUP is an index into the group names. */
    static final int CLIENT = 0, USER = 1, CLIENT_ID = 2, ALL = 3, NEWCOMER = 4, EXEMPT = 5, GROUP = 16;

    private final ConcurrentHashMap<String, ConcurrentHashMap<String, Tags>> byUser = new ConcurrentHashMap<>();
    private final AtomicIntegerArray generations = new AtomicIntegerArray(Tags.TYPES);
    private volatile LimitRule rule = LimitRule.DEFAULT;
    /** The share of its limits with which a twin begins. Under the lock. */
    private double twinsBegin = 1;
    /** By quota type, whether somebody reads what Kafka measures for clients without a quota. Under the lock. */
    private final boolean[] measured = new boolean[Tags.TYPES];
    final Tags newcomers = permanent(NEWCOMERS);
    /** Of all who have no quota of a type that is not measured. */
    final Tags unlimited = permanent(UNLIMITED);
    final Tags exempt = permanent(EXEMPTED);

    /** What is known of a principal before its first answer. */
    final Whole nothing = new Whole(new Tags[Tags.TYPES], everyType(newcomers), false, false, ClientIds.NONE,
            new String[Tags.TYPES]);

    Scopes() {
        for (int type = 0; type < Tags.TYPES; type++) exempt.set(type, Double.NaN, true, rule);
    }

    private static Tags[] everyType(Tags tags) {
        Tags[] all = new Tags[Tags.TYPES];
        Arrays.fill(all, tags);
        return all;
    }

    /** Tags that are always there: with a holder for each type, sweep() doesn't forget them. */
    private Tags permanent(String user) {
        Tags tags = of(user, "");
        for (int type = 0; type < Tags.TYPES; type++) tags.join(type);
        return tags;
    }

    /** Whether tags are always there, and no client's answer gives them a rate. */
    boolean isPermanent(Tags tags) {
        return tags == newcomers || tags == unlimited || tags == exempt;
    }

    /** Sets by quota type whether clients without a quota need tags of their own, to be measured. */
    void measured(boolean[] types) {
        System.arraycopy(types, 0, measured, 0, Tags.TYPES);
    }

    /** Sets the share of its limits with which a twin begins. */
    void twinsBeginWith(double share) {
        twinsBegin = share;
        each((tags, type) -> {
            if (tags.twin() == null) tags.twinShare(share);
        });
    }

    /** The limit of the tags with these values, twins' too, or that of newcomers if there are none. */
    Double limit(int type, String user, String clientId) {
        String own = Twin.ownUser(user);
        Tags tags = find(own == null ? user : own, clientId);
        if (tags == null) return newcomers.limit(type);
        return own == null ? tags.limit(type) : tags.slowedLimit(type);
    }

    /** The tags with these values, or null. Kafka hands the values back in a map of its own, so both may be null. */
    Tags find(String user, String clientId) {
        if (user == null || clientId == null) return null;
        ConcurrentHashMap<String, Tags> some = byUser.get(user);
        return some == null ? null : some.get(clientId);
    }

    /** Grows whenever limits of a type have changed that Kafka may have in its sensors. */
    int generation(int type) {
        return generations.get(type);
    }

    /**
     * The tags of a client for an answer.
     *
     * @param rate NaN for unlimited
     * @param unknown the tags of the principal's client-ids that are not known, for the code NEWCOMER
     */
    Tags of(int code, double rate, int type, Client client, String[] groups, Tags unknown) {
        if (code == NEWCOMER) return unknown;
        Tags shared = shared(code, rate, type, client.user, groups);
        return shared != null ? shared : of(code == CLIENT ? client.user : "", client.clientId);
    }

    /**
     * The tags of an answer that are the same for all client-ids of a principal, or null if they depend on the
     * client-id. Sanitizing replaces '<' and ' ', so no real user gets a tag with these.
     *
     * @param user the principal's name, sanitized
     */
    Tags shared(int code, double rate, int type, String user, String[] groups) {
        if (code == EXEMPT) return exempt;
        if (Double.isNaN(rate) && !measured[type]) return unlimited;
        return switch (code) {
            case CLIENT, CLIENT_ID, NEWCOMER -> null;
            case USER -> of(user, "");
            case ALL -> of(BROKER, "");
            default -> of("<group " + Sanitized.tag(groups[code - GROUP]) + ">", "");
        };
    }

    /** The tags that the unknown client-ids of one user share. */
    Tags newcomersOf(String user) {
        return of("<newcomers " + user + ">", "");
    }

    /** Whether clients have these tags because they are not known. */
    static boolean isOfNewcomers(Tags tags) {
        return tags.user.startsWith("<newcomers");
    }

    private Tags of(String user, String clientId) {
        return byUser.computeIfAbsent(user, u -> new ConcurrentHashMap<>(1))
                .computeIfAbsent(clientId, c -> make(user, c));
    }

    private Tags make(String user, String clientId) {
        Tags tags = new Tags(user, clientId);
        tags.twinShare(twinsBegin);
        if (newcomers == null) return tags; // these are the newcomers' own
        for (int type = 0; type < Tags.TYPES; type++) tags.standIn(type, newcomers.base(type), false);
        return tags;
    }

    LimitRule rule() {
        return rule;
    }

    /** Computes every limit anew, and has Kafka read the limits of each type in which one has changed. */
    void apply(LimitRule next) {
        rule = next;
        boolean[] reset = new boolean[Tags.TYPES];
        each((tags, type) -> reset[type] |= tags.refresh(type, next));
        bump(reset);
    }

    /**
     * Gives every scope the rate that a factor multiplies if it is unlimited: the measured rate, or else the
     * newcomers'.
     *
     * @param rates by (user tag, client-id tag), in the type's unit
     * @param least a lower measured rate is not used
     */
    void standIns(int type, Map<List<String>, Double> rates, double least) {
        double unmeasured = newcomers.base(type);
        each((tags, eachType) -> {
            if (eachType != type) return;
            Double rate = rates.get(List.of(tags.user, tags.clientId));
            boolean usable = rate != null && rate >= least;
            tags.standIn(type, usable ? rate : unmeasured, usable);
        });
    }

    /** Has Kafka read all limits of these types again. */
    void bump(boolean[] reset) {
        for (int type = 0; type < Tags.TYPES; type++) if (reset[type]) generations.incrementAndGet(type);
    }

    /** Forgets the tags that no client has had since a beat of the table's clock. */
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
