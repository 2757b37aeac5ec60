package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;

/** Tests several readers and one writer. From each rate a test knows its client and the publication of the rate. */
class QuotaTableRaceTest {
    private static final int CLIENTS = 8;
    private static final int VERSIONS = 20_000;
    private static final int BASE = 1_000_000;

    private final QuotaTable table = Tables.table(new Inbox(), CLIENTS, 3_600);
    private final AtomicBoolean done = new AtomicBoolean();
    private final ExecutorService readers = Executors.newFixedThreadPool(3);

    @AfterEach
    void stop() {
        readers.shutdownNow();
    }

    /** A limit is stored before its generation is visible. Before that a reader may see the new and the old limit in turn. */
    @Test
    void aReaderThatSeesAGenerationSeesItsLimitsAndNeverOlderOnesAgain() throws Exception {
        publish(0, Scopes.CLIENT);
        // From here on Kafka may have limits of all clients.
        for (int client = 0; client < CLIENTS; client++) Tables.limit(table, 0, "u" + client, "c");
        int first = table.factorInForce.generation(0);
        List<Future<Integer>> reads = start(() -> {
            int looks = 0;
            while (!done.get()) for (int client = 0; client < CLIENTS; client++, looks++) {
                int seen = table.factorInForce.generation(0) - first;
                int version = version(client, Tables.limit(table, 0, "u" + client, "c"));
                assertTrue(version >= seen, () -> "generation " + seen + " was seen, and then the limits of " + version);
            }
            return looks;
        });

        for (int version = 1; version <= VERSIONS; version++) publish(version, Scopes.CLIENT);

        finish(reads);
        assertEquals(VERSIONS, table.factorInForce.generation(0) - first, "each publication changed every limit");
    }

    /** Clients move between scopes, are forgotten and come back. Their tags are always their own or the newcomers'. */
    @Test
    void tagsAndLimitAlwaysBelongToTheClientThatAsks() throws Exception {
        int[] scopes = {Scopes.CLIENT, Scopes.USER, Scopes.CLIENT_ID, Scopes.GROUP, Scopes.NEWCOMER};
        publish(0, Scopes.CLIENT);
        List<Future<Integer>> reads = start(() -> {
            int looks = 0;
            while (!done.get()) for (int client = 0; client < CLIENTS; client++, looks++) {
                var tags = Tables.tags(table, 0, "u" + client, "c" + client);
                Double limit = table.limit(0, tags);
                String text = tags.get("user") + "/" + tags.get("client-id");
                if (tags == table.newcomers) assertEquals(100.0, limit);
                else assertTrue(List.of("u" + client + "/c" + client, "u" + client + "/", "/c" + client, "<group g" + client + ">/",
                        "<newcomers u" + client + ">/").contains(text), text);
                if (!text.startsWith("<newcomers")) version(client, limit);
            }
            return looks;
        });

        for (int version = 1; version <= VERSIONS / 4; version++) {
            publishOwn(version, scopes[version % scopes.length]);
            if (version % 100 == 0) for (int tick = 0; tick <= QuotaTable.TICKS_PER_IDLE; tick++) Tables.tick(table);
        }

        finish(reads);
    }

    /** A client keeps its own tags as long as its principal's answer needs them. */
    @Test
    void aKnownClientIsNeverANewcomerWhicheverAnswerComes() throws Exception {
        Tables.publishWhole(table, "u0", "c", Scopes.CLIENT, 1_000);
        List<Future<Integer>> reads = start(() -> {
            int looks = 0;
            for (; !done.get(); looks++) assertEquals("u0", Tables.tags(table, "u0", "c").get("user"));
            return looks;
        });

        for (int i = 1; i <= VERSIONS / 4; i++) {
            Tables.publishWhole(table, "u0", "c", Scopes.USER, 1_000);
            Tables.publishWhole(table, "u0", "c", Scopes.CLIENT, 1_000);
            table.beat(10_000L * i); // clients keep the former scope of all for some seconds only
        }

        finish(reads);
    }

    private void publish(int version, int code) {
        publish(version, code, "c");
    }

    private void publishOwn(int version, int code) {
        publish(version, code, null);
    }

    private void publish(int version, int code, String clientId) {
        List<Batch.Lookup> clients = new ArrayList<>();
        int[] codes = new int[CLIENTS * QuotaTable.TYPES];
        double[] rates = new double[CLIENTS * QuotaTable.TYPES];
        String[] groups = new String[CLIENTS];
        for (int client = 0; client < CLIENTS; client++) {
            clients.add(new Batch.Lookup("u" + client, clientId != null ? clientId : "c" + client, 0));
            int at = client * QuotaTable.TYPES;
            Arrays.fill(codes, at, at + QuotaTable.TYPES, code == Scopes.GROUP ? code + client : code);
            Arrays.fill(rates, at, at + QuotaTable.TYPES, code >= Scopes.NEWCOMER && code < Scopes.GROUP ? Double.NaN : rate(client, version));
            groups[client] = "g" + client;
        }
        Tables.publish(table, new Batch(clients, List.of()), codes, rates, groups);
    }

    private static double rate(int client, int version) {
        return (client + 1.0) * BASE + version;
    }

    /** Returns the publication of a limit. Fails if the limit is another client's or was never published. */
    private static int version(int client, double limit) {
        assertEquals(client + 1, (int) (limit / BASE), () -> "client " + client + " has the limit " + limit);
        return (int) (limit % BASE);
    }

    private List<Future<Integer>> start(Callable<Integer> reader) {
        List<Future<Integer>> reads = new ArrayList<>();
        for (int i = 0; i < 3; i++) reads.add(readers.submit(reader));
        return reads;
    }

    private void finish(List<Future<Integer>> reads) throws Exception {
        done.set(true);
        for (Future<Integer> read : reads) assertTrue(read.get() > 0);
    }
}
