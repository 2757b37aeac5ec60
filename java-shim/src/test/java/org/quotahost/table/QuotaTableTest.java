package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.limit;
import static org.quotahost.table.Tables.publish;
import static org.quotahost.table.Tables.tags;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;

/** Tags and limits of clients, from the first request to the last. */
class QuotaTableTest {
    private static final Map<String, String> NEWCOMER = Map.of("user", "<newcomers>", "client-id", "");

    private static final KafkaPrincipal ALICE = Tables.principal("alice");

    private final Inbox inbox = new Inbox();
    private final QuotaTable table = Tables.table(inbox, 3, 3_600);

    @Test
    void aClientIsANewcomerUntilItsQuotaIsPublished() {
        assertEquals(NEWCOMER, tags(table, "alice", "a"));
        assertEquals(100.0, limit(table, PRODUCE, "alice", "a"));
        assertEquals(List.of("alice/a"), Inboxes.drain(inbox));

        publish(table, "alice", "a", Scopes.CLIENT, 5_000);

        assertEquals(Map.of("user", "alice", "client-id", "a"), tags(table, "alice", "a"));
        assertEquals(5_000.0, limit(table, PRODUCE, "alice", "a"));
        assertEquals(List.of(), Inboxes.drain(inbox));
    }

    @Test
    void tagsAreKafkasInItsOrderWithTheUserSanitized() {
        publish(table, "a:b/ü", "c:d", Scopes.CLIENT, 1_000);
        assertEquals(List.of("user", "client-id"), List.copyOf(tags(table, "a:b/ü", "c:d").keySet()));
        assertEquals("a%3Ab%2F%C3%BC:c:d", String.join(":", tags(table, "a:b/ü", "c:d").values()));
    }

    @Test
    void aScopeIsSharedByAllClientsThatHaveIt() {
        publish(table, "alice", "a", Scopes.USER, 10_000);
        publish(table, "alice", "b", Scopes.USER, 20_000);
        publish(table, "bob", "b", Scopes.GROUP, 30_000, "team a");

        assertEquals(tags(table, "alice", "a"), tags(table, "alice", "b"));
        assertEquals(20_000.0, limit(table, PRODUCE, "alice", "a"));
        assertEquals("<group team%20a>", tags(table, "bob", "b").get("user"));
    }

    @Test
    void theFactorMultipliesOnlyItsTypesAndNeverTheExempt() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        publish(table, "root", "r", Scopes.EXEMPT, Double.NaN);

        table.factor(0.5, "");

        assertEquals(500.0, limit(table, PRODUCE, "alice", "a"));
        assertEquals(1_000.0, limit(table, FETCH, "alice", "a"));
        assertNull(limit(table, PRODUCE, "root", "r"));
        table.factor(0, "");
        assertEquals(10.0, limit(table, PRODUCE, "alice", "a"), "the floor");
        assertNull(limit(table, PRODUCE, "root", "r"));
    }

    @Test
    void inShadowNothingIsEnforced() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        table.configure(3, 3_600, 10, new String[] {"PRODUCE"}, true, Tables.NEWCOMERS, Tables.ALL);
        assertNull(limit(table, PRODUCE, "alice", "a"));
        assertNull(limit(table, PRODUCE, "someone", "new"));
    }

    @Test
    void kafkaReadsTheLimitsAgainExactlyWhenOneThatItMayHaveHasChanged() {
        int before = table.generation(PRODUCE);
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        publish(table, "alice", "a", Scopes.CLIENT, 2_000);
        assertEquals(before, table.generation(PRODUCE), "nobody has had these tags");

        tags(table, "alice", "a");
        publish(table, "alice", "a", Scopes.CLIENT, 2_000);
        assertEquals(before, table.generation(PRODUCE), "the same answer is no change");
        publish(table, "alice", "a", Scopes.CLIENT, 3_000);
        assertNotEquals(before, before = table.generation(PRODUCE));

        table.factor(0.5, "");
        assertNotEquals(before, table.generation(PRODUCE));
    }

    @Test
    void limitsAreFoundByKafkasOwnCopyOfTheTags() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        assertEquals(1_000.0, table.limit(PRODUCE, new LinkedHashMap<>(tags(table, "alice", "a"))));
        assertEquals(100.0, table.limit(PRODUCE, Map.of("user", "stranger", "client-id", "")));
        assertEquals(100.0, table.limit(PRODUCE, Map.of()));
    }

    @Test
    void aFailedSupplierKeepsTheLastAnswerOrLeavesANewcomerToAskFor() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        publish(table, "alice", "a", Scopes.NEWCOMER, Double.NaN);
        publish(table, "bob", "b", Scopes.NEWCOMER, Double.NaN);

        assertEquals(1_000.0, limit(table, PRODUCE, "alice", "a"));
        assertEquals(Map.of("user", "<newcomers bob>", "client-id", ""), tags(table, "bob", "b"));
        table.askAgainTheFailed();
        assertEquals(2, Inboxes.drain(inbox).size());

        publish(table, "bob", "b", Scopes.CLIENT, 3_000);
        assertEquals(3_000.0, limit(table, PRODUCE, "bob", "b"));
        assertEquals(100.0, limit(table, PRODUCE, "someone", "new"), "the newcomers' limit is its own");
    }

    @Test
    void aFullTableAdmitsNoClientAndForgetsNone() {
        for (String name : List.of("u", "v", "w", "x")) publish(table, name, "a", Scopes.CLIENT, 1_000);
        assertEquals(3, table.size());
        assertEquals(NEWCOMER, tags(table, "x", "a"));
        assertEquals(List.of(), Inboxes.drain(inbox), "nor is the host asked in vain");
        assertEquals(1, table.counters().unadmitted.sum());
        assertEquals(1_000.0, limit(table, PRODUCE, "u", "a"));
    }

    @Test
    void onlyTheSilentAreForgottenAndTheirPlaceIsGivenOn() {
        for (String name : List.of("a", "b")) publish(table, "u", name, Scopes.CLIENT, 1_000);
        publish(table, "v", "a", Scopes.CLIENT, 1_000);
        for (int tick = 0; tick <= QuotaTable.TICKS_PER_IDLE; tick++) {
            table.tick();
            tags(table, "u", "a");
        }
        assertEquals(1, table.size());
        assertEquals("u", tags(table, "u", "a").get("user"));
        publish(table, "u", "d", Scopes.CLIENT, 1_000);
        assertEquals("d", tags(table, "u", "d").get("client-id"));
    }

    @Test
    void aForgottenClientComesBackToTheSameSensorWithNoHigherLimit() {
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        Map<String, String> before = tags(table, "u", "a");
        for (int tick = 0; tick <= QuotaTable.TICKS_PER_IDLE; tick++) table.tick();
        assertEquals(0, table.size());
        assertEquals(1_000.0, table.limit(PRODUCE, new LinkedHashMap<>(before)), "Kafka's sensor keeps its limit");
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        assertEquals(before, tags(table, "u", "a"));
    }

    @Test
    void theFallbackIsInForceWhileItIsSetAndTheHostsFactorAfterwards() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        table.factor(0.5, "");
        table.fallback(0.0);
        assertEquals(10.0, limit(table, PRODUCE, "alice", "a"));
        table.factor(0.7, "");
        assertEquals(10.0, limit(table, PRODUCE, "alice", "a"));
        table.fallback(null);
        assertEquals(700.0, limit(table, PRODUCE, "alice", "a"));
    }

    @Test
    void aHitAllocatesNothing() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long id = Thread.currentThread().getId();
        lookUp(20_000);
        long before = threads.getThreadAllocatedBytes(id);
        lookUp(100_000);
        long each = (threads.getThreadAllocatedBytes(id) - before) / 100_000; // the JVM itself may need some, once
        assertEquals(0, each);
    }

    private void lookUp(int times) {
        for (int i = 0; i < times; i++) {
            table.limit(PRODUCE, table.tags(PRODUCE, ALICE, "a"));
            table.generation(PRODUCE);
        }
    }
}
