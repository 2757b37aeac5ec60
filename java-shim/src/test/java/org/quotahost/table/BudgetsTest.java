package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.PRODUCE;

import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.quotahost.QuotaFence;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.table.QuotaTable.SlowedTopics;

/** Tests budgets of storage: each slows or stops only the clients that write to its topics. */
class BudgetsTest {
    private QuotaTable table;
    private QuotaFence fence;
    private long ms;

    @BeforeEach
    @BeforeTry // jqwik's tries share this object
    void install() {
        table = Tables.table();
        ms = 0;
        fence = FenceFixture.fence("none", Map.of("super.users", "User:admin"));
        for (String name : new String[] {"alice", "bob", "carol"}) Tables.publish(table, name, "c", Tables.CLIENT, 1_000);
        budgets(1, 1, 1, false);
        for (String name : new String[] {"alice", "bob", "carol"}) tags(name);
        pass(15); // fills Kafka's windows
    }

    @AfterEach
    @AfterTry
    void reset() {
        FenceFixture.reset();
    }

    /** Sets the factor of the volumes (for all clients, or for those that write to the topic disk) and those of both budgets. */
    private void budgets(double ofVolumes, double orders, double logs, boolean volumesByTopics) {
        table.factor(ofVolumes, "cause", volumesByTopics ? group(SlowedTopics.VOLUMES, ofVolumes, "", "disk") : null);
        table.budgets(List.of(
                group("orders.*", orders, "the budget orders.* is used up", "orders.eu", "orders.us"),
                group("logs", logs, "the budget logs is used up", "logs")));
    }

    private static SlowedTopics group(String name, double factor, String error, String... topics) {
        return new SlowedTopics(name, factor, error.isEmpty() ? Fence.CLOSED : Fence.refusal(error), topics, topics,
                factor <= 0 ? Set.of(topics) : Set.of());
    }

    private void write(String principal, String... topics) {
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, principal, "c"), FenceFixture.write(topics));
    }

    private Map<String, String> tags(String principal) {
        return table.tags(PRODUCE, new KafkaPrincipal(KafkaPrincipal.USER_TYPE, principal), "c");
    }

    private double limit(String principal) {
        Double limit = table.limit(PRODUCE, tags(principal));
        return limit == null ? Double.POSITIVE_INFINITY : limit;
    }

    /** Lets each client go on: alice writes to orders, bob to logs, carol elsewhere. */
    private void pass(int seconds) {
        for (int i = 0; i < 5 * seconds; i++) {
            table.beat(ms += QuotaTable.BEAT_MS);
            if (i % 5 == 0) write("carol", "other");
            tags("alice");
            tags("bob");
            tags("carol");
        }
    }

    private void writing(int seconds) {
        for (int i = 0; i < seconds; i++) {
            write("alice", "orders.eu");
            write("bob", "logs");
            pass(1);
        }
    }

    @Test
    void aUsedUpBudgetHoldsItsTopicAlsoOnAVolumeThatSlowsItWhileAnotherVolumeIsFull() {
        String[] topics = {"logs", "disk"};
        table.factor(0, "full", new SlowedTopics(SlowedTopics.VOLUMES, 0, Fence.CLOSED, topics, topics, Set.of("disk")));
        write("bob", "logs");
        table.budgets(List.of(group("logs", 0, "the budget logs is used up", "logs")));
        assertThrows(NotEnoughReplicasException.class, () -> write("bob", "logs"));
    }

    /** Budgets come and go, and one client may write to the topics of all of them. */
    @Test
    void whatAClientHadForAnEarlierBudgetIsForgottenWhileItGoesOn() {
        budgets(1, 0.5, 1, false);
        write("alice", "orders.eu");
        var earlier = new WeakReference<>(tags("alice"));
        assertEquals("<budget orders.* alice>", tags("alice").get("user"));
        table.budgets(List.of());
        for (int tick = 0; tick < 3 * QuotaTable.TICKS_PER_IDLE; tick++) {
            Tables.tick(table);
            tags("alice");
        }

        for (int i = 0; i < 20 && earlier.get() != null; i++) System.gc();
        assertNull(earlier.get());
    }

    /** Otherwise the client would have the limit of each group, since Kafka measures the groups apart. */
    @Test
    void whoWritesInTurnToTopicsOfSeveralWithTheSameFactorHasOneLimit() {
        budgets(0.5, 0.5, 0.5, true);
        write("alice", "logs");
        for (int i = 0; i < 40; i++) {
            write("alice", i % 2 == 0 ? "orders.eu" : "disk");
            assertEquals("<budget logs alice>", tags("alice").get("user"));
            write("alice", "logs");
            pass(1);
        }

        assertEquals(500, limit("alice"), 1);
    }

    @Test
    void atZeroRequestsToItsTopicsAreTurnedBackWithItsNameAndOthersPass() {
        budgets(1, 0, 0.5, false);

        var error = assertThrows(NotEnoughReplicasException.class, () -> write("alice", "orders.eu"));
        assertTrue(error.getMessage().contains("the budget orders.* is used up"), error.getMessage());
        assertSame(error, assertThrows(NotEnoughReplicasException.class, () -> write("alice", "other", "orders.us")));
        write("bob", "logs");
        write("carol", "other");
        write("admin", "orders.eu");
        assertEquals(false, table.factorInForce.paused());

        budgets(1, 1, 0.5, false);
        write("alice", "orders.eu");
    }

    @Test
    void aTopicOfSeveralHasTheErrorAndTheFactorOfTheSmallestWhicheverIsSetLast() {
        table.budgets(List.of(group("orders.*", 0, "the budget orders.* is used up", "orders.eu"),
                group("eu", 0.5, "the budget eu is used up", "orders.eu")));
        table.factor(0.7, "cause", group(SlowedTopics.VOLUMES, 0.7, "", "orders.eu", "disk"));
        assertEquals(2, table.affectedTopics(), "as many as the cause names, whatever else slows them");

        var error = assertThrows(NotEnoughReplicasException.class, () -> write("alice", "orders.eu"));
        assertTrue(error.getMessage().contains("the budget orders.* is used up"), error.getMessage());
        write("bob", "disk");
        assertEquals(List.of("<budget orders.* alice>", "<slowed bob>"),
                List.of(tags("alice").get("user"), tags("bob").get("user")));
    }

    @Test
    void inAPauseForAllEachRequestIsTurnedBackForTheVolumes() {
        budgets(0, 0.75, 0.25, false);
        for (String topic : new String[] {"orders.eu", "logs", "other"}) {
            var error = assertThrows(NotEnoughReplicasException.class, () -> write("alice", topic));
            assertSame(Fence.CLOSED, error);
        }
    }

    @Test
    void besideHeldTopicsOnVolumesEachRequestIsTurnedBackForItsOwnGroup() {
        budgets(0, 0.75, 1, true);

        assertSame(Fence.CLOSED, assertThrows(NotEnoughReplicasException.class, () -> write("bob", "disk")));
        write("alice", "orders.eu");
        write("carol", "other");
    }

    @Test
    void whileTheFallbackIsInForceNoBudgetIs() {
        budgets(1, 0, 1, false);
        table.fallback(1.0);

        write("alice", "orders.eu");
        table.fallback(null);
        assertThrows(NotEnoughReplicasException.class, () -> write("alice", "orders.eu"));
    }

    @Property(tries = 60)
    void whatevertheFactorsAreNobodyHasMoreThanItsGroupAllowsAndNoOtherIsTouched(
            @ForAll @DoubleRange(min = 0.05, max = 1) double orders, @ForAll @DoubleRange(min = 0.05, max = 1) double logs,
            @ForAll @DoubleRange(min = 0.05, max = 1) double volumes, @ForAll boolean byTopics) {
        budgets(volumes, orders, logs, byTopics);
        writing(40);

        double ofAll = byTopics ? 1 : volumes;
        assertEquals(1_000 * Math.min(ofAll, orders), limit("alice"), 25);
        assertEquals(1_000 * Math.min(ofAll, logs), limit("bob"), 25);
        assertEquals(1_000 * ofAll, limit("carol"), 25);
        assertEquals("carol", tags("carol").get("user"));
        assertEquals("<budget orders.* alice>", tags("alice").get("user"));
        assertEquals("<budget logs bob>", tags("bob").get("user"));
        assertEquals(byTopics ? 1 : -1, table.affectedTopics());
        for (String name : new String[] {"alice", "bob", "carol"}) {
            assertEquals(limit(name), table.limit(PRODUCE, Map.copyOf(tags(name))), "Kafka may hand a copy of the tags back");
        }
    }
}
