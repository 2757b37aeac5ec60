package org.quotahost;

import java.util.Arrays;
import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaType;

/** What tests of the table start from. */
final class Given {
    static final int PRODUCE = ClientQuotaType.PRODUCE.ordinal();
    static final int FETCH = ClientQuotaType.FETCH.ordinal();
    static final int REQUEST = ClientQuotaType.REQUEST.ordinal();
    static final int MUTATION = ClientQuotaType.CONTROLLER_MUTATION.ordinal();
    static final double UNLIMITED = Double.NaN;
    static final double FLOOR = 35_000;
    static final double NEWCOMERS = 5_000_000;
    static final int HOUR = 3_600;

    private Given() {}

    /** A table for so many clients, whose newcomers have a limit of their own. */
    static QuotaTable table(int clientsMax) {
        return table(clientsMax, new Inbox());
    }

    static QuotaTable table(int clientsMax, Inbox inbox) {
        QuotaTable table = new QuotaTable(inbox);
        configure(table, clientsMax, HOUR, false, "PRODUCE");
        return table;
    }

    static void configure(QuotaTable table, int clientsMax, long idle, boolean shadow, String... factored) {
        table.configure(clientsMax, idle, FLOOR, factored, shadow, same(NEWCOMERS));
    }

    /** The host answers for one client: the same scope and rate for each quota type. */
    static int answer(QuotaTable table, String principal, String clientId, int code, double rate, String... groups) {
        return answers(table, principal, clientId, codes(code), same(rate), groups);
    }

    /** The host answers for one client, each quota type by itself. */
    static int answers(QuotaTable table, String principal, String clientId, int[] codes, double[] rates, String... groups) {
        Batch batch = new Batch(List.of(new Batch.Asked(principal, clientId, 0)), List.of());
        return table.publish(batch, codes, rates, groups);
    }

    static int[] codes(int code) {
        int[] codes = new int[Tags.TYPES];
        Arrays.fill(codes, code);
        return codes;
    }

    static double[] same(double rate) {
        double[] rates = new double[Tags.TYPES];
        Arrays.fill(rates, rate);
        return rates;
    }

    /** The limit that Kafka would put into this client's sensor. */
    static Double limit(QuotaTable table, int type, String principal, String clientId) {
        return table.limit(type, table.tags(type, principal, clientId));
    }

    static boolean newcomer(QuotaTable table, String principal, String clientId) {
        return table.tags(PRODUCE, principal, clientId) == table.newcomers();
    }

    static List<String> names(Batch batch) {
        return batch.clients.stream().map(c -> c.principal() + "/" + c.clientId()).sorted().toList();
    }

    /** Silence of this many eighths of clients.idle passes. */
    static void ticks(QuotaTable table, int count) {
        for (int i = 0; i < count; i++) table.tick();
    }

    /** So long that nobody who said nothing meanwhile is still known. */
    static void idlePasses(QuotaTable table) {
        ticks(table, QuotaTable.TICKS_PER_IDLE + 1);
    }
}
