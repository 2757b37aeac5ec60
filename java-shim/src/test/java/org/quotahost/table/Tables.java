package org.quotahost.table;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.table.Answer.Quota;
import org.quotahost.table.QuotaTable.SlowedTopics;

/** Makes quota tables for tests, filled as the host fills them. */
public final class Tables {
    public static final int PRODUCE = 0;
    public static final int FETCH = 1;
    /** The scope code of a client with a quota of its own. */
    public static final int CLIENT = Scopes.CLIENT;
    public static final double[] NEWCOMERS = {100, 100, 100, 100};

    /** The names of all quota types. */
    public static final String[] ALL = {"PRODUCE", "FETCH", "REQUEST", "CONTROLLER_MUTATION"};

    private Tables() {}

    public static QuotaTable table() {
        return table(new Inbox(), 100, 3_600);
    }

    public static QuotaTable table(Inbox inbox, int max, long idleSeconds) {
        QuotaTable table = new QuotaTable(inbox);
        table.configureTap(1, 0, 1); // limits follow at once
        table.configure(max, idleSeconds, 10, new String[] {"PRODUCE"}, NEWCOMERS, ALL);
        return table;
    }

    /** Makes the factor multiply these types, down to this floor (bytes/s). */
    public static void configure(QuotaTable table, double floor, String... factored) {
        table.configure(100, 3_600, floor, factored, NEWCOMERS, ALL);
    }

    /** Puts these rules into shadow immediately. */
    public static void shadow(QuotaTable table, String... rules) {
        table.shadow(List.of(rules));
        table.beat(table.now * QuotaTable.BEAT_MS);
    }

    /** Publishes one answer for all types of one client, from a supplier named "static"; each client-id may have another answer. */
    public static void publish(QuotaTable table, String principal, String clientId, int code, double rate, String... groups) {
        publish(table, principal, clientId, code, rate, false, Set.of(), groups);
    }

    /** Publishes one answer for all types that holds for all client-ids of a principal except the distinct ones. */
    public static void publishWhole(QuotaTable table, String principal, String clientId, int code, double rate, String... distinct) {
        publish(table, principal, clientId, code, rate, true, new HashSet<>(List.of(distinct)), "gold");
    }

    private static void publish(QuotaTable table, String principal, String clientId, int code, double rate, boolean alike,
            Set<String> ids, String... groups) {
        int[] codes = new int[QuotaTable.TYPES];
        double[] rates = new double[QuotaTable.TYPES];
        Arrays.fill(codes, code);
        Arrays.fill(rates, rate);
        var batch = new Batch(List.of(new Batch.Lookup(principal, clientId, System.nanoTime())), List.of());
        publish(table, batch, codes, rates, groups, alike, ids);
    }

    public static void publish(QuotaTable table, Batch batch, int[] codes, double[] rates, String[] groups) {
        publish(table, batch, codes, rates, groups, false, Set.of());
    }

    /** Publishes answers that hold for all client-ids of their principals except the distinct ones. */
    public static void publish(QuotaTable table, Batch batch, int[] codes, double[] rates, String[] groups, Set<String> ids) {
        publish(table, batch, codes, rates, groups, true, ids);
    }

    /** Publishes answers; codes from GROUP on refer to the groups. */
    private static void publish(QuotaTable table, Batch batch, int[] codes, double[] rates, String[] groups, boolean alike,
            Set<String> ids) {
        Quota[] quotas = new Quota[codes.length];
        for (int i = 0; i < codes.length; i++) {
            String group = codes[i] < Scopes.GROUP || groups.length == 0 ? "" : groups[codes[i] - Scopes.GROUP];
            quotas[i] = new Quota(Math.min(codes[i], Scopes.GROUP), rates[i], group, "static");
        }
        int[] numbers = IntStream.range(0, codes.length / QuotaTable.TYPES).toArray();
        table.publish(batch, numbers, Arrays.stream(numbers).map(number -> number * QuotaTable.TYPES)
                .mapToObj(at -> new Answer(Arrays.copyOfRange(quotas, at, at + QuotaTable.TYPES), alike, ids, "")).toList());
    }

    /** Sets the factor for clients that write to these topics on volumes; requests to topics named "held..." are turned back. */
    public static void affect(QuotaTable table, double factor, String... topics) {
        String[] places = new String[topics.length];
        Arrays.fill(places, "broker 3, volume /dev/sdb");
        Set<String> held = Arrays.stream(topics).filter(topic -> topic.startsWith("held")).collect(Collectors.toSet());
        table.factor(factor, "full", new SlowedTopics(SlowedTopics.VOLUMES, factor, Fence.CLOSED, topics, places, held));
    }

    /** Returns the host's report of a budget that slows the clients that write to these topics. */
    static SlowedTopics budget(String name, double factor, String... topics) {
        return new SlowedTopics(name, factor, Fence.CLOSED, topics, topics, factor <= 0 ? Set.of(topics) : Set.of());
    }

    /** Lets an eighth of clients.idle pass, after which the table looks for silent clients. */
    static void tick(QuotaTable table) {
        table.beat((table.now + table.eighth()) * QuotaTable.BEAT_MS);
        table.evict();
    }

    /** Returns the number of scopes. */
    static int scopes(QuotaTable table) {
        List<Scope> all = new ArrayList<>();
        table.scopes.forEach(all::add);
        return all.size();
    }

    public static KafkaPrincipal principal(String name) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, name);
    }

    /** Returns the limit that Kafka gets for a copy of the client's tags, as in its walk over all sensors. */
    public static Double limit(QuotaTable table, int type, String principal, String clientId) {
        return table.limit(type, new LinkedHashMap<>(tags(table, type, principal, clientId)));
    }

    public static Map<String, String> tags(QuotaTable table, int type, String principal, String clientId) {
        return table.tags(type, principal(principal), clientId);
    }

    public static Map<String, String> tags(QuotaTable table, String principal, String clientId) {
        return tags(table, PRODUCE, principal, clientId);
    }
}
