package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.quotahost.inbox.Inbox;

/** Properties of tags and limits that are true for any names and any rates. */
class QuotaTablePropertiesTest {
    @Property(tries = 300)
    void noTwoScopesShareASensorName(
            @ForAll @Size(max = 20) List<String> users, @ForAll @Size(max = 20) List<String> clients,
            @ForAll @IntRange(min = 0, max = 3) int code) {
        QuotaTable table = Tables.table(new Inbox(), 1_000, 3_600);
        Map<String, Map<String, String>> byName = new HashMap<>();
        for (String user : users) {
            for (String client : clients) {
                Tables.publish(table, user, client, code, 1_000);
                Map<String, String> tags = Tables.tags(table, user, client);
                Map<String, String> other = byName.put(String.join(":", tags.values()), tags);
                if (other != null) assertEquals(other, tags);
            }
        }
    }

    /** Whatever the writer does, readers get a client's own tags and a limit that was published for it. */
    @Property(tries = 5)
    void readersNeverSeeATornAnswer(@ForAll @IntRange(min = 1, max = 50) int clients) throws InterruptedException {
        QuotaTable table = Tables.table(new Inbox(), 1_000, 3_600);
        for (int i = 0; i < clients; i++) Tables.publish(table, "u" + i, "c", Scopes.CLIENT, i * 1_000 + 1_000);
        AtomicBoolean done = new AtomicBoolean();
        AtomicReference<Throwable> torn = new AtomicReference<>();
        List<Thread> readers = List.of(reader(table, clients, done, torn), reader(table, clients, done, torn));
        readers.forEach(Thread::start);
        for (int round = 0; round < 2_000; round++) {
            int i = round % clients;
            int code = round % 3 == 0 ? Scopes.USER : Scopes.CLIENT;
            Tables.publish(table, "u" + i, "c", code, i * 1_000 + 1_000 + round % 500);
            if (round % 50 == 0) table.factor(round % 100 == 0 ? 1 : 0.999, "");
            if (round % 500 == 0) table.tick(); // fewer than would forget a client that no reader came to
        }
        done.set(true);
        for (Thread reader : readers) reader.join();
        if (torn.get() != null) throw new AssertionError(torn.get());
    }

    private static Thread reader(QuotaTable table, int clients, AtomicBoolean done, AtomicReference<Throwable> torn) {
        return new Thread(() -> {
            try {
                int[] seen = new int[1];
                while (!done.get()) for (int i = 0; i < clients; i++) look(table, i, seen);
            } catch (Throwable e) {
                torn.set(e);
            }
        });
    }

    private static void look(QuotaTable table, int i, int[] seen) {
        Map<String, String> tags = Tables.tags(table, 0, "u" + i, "c");
        assertNotNull(tags);
        assertEquals("u" + i, tags.get("user"));
        Double limit = table.limit(0, tags);
        if (limit != null) assertTrue(limit >= 0.998 * (i * 1_000 + 1_000) && limit < i * 1_000 + 2_000, () -> i + ": " + limit);
        int generation = table.generation(0);
        assertTrue(generation >= seen[0], "a generation never goes back");
        seen[0] = generation;
    }
}
