package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.QuotaFence;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.table.QuotaTable.SlowedTopics;

/** Tests a factor for clients that write to affected topics: which clients it slows, and when that ends. */
@ExtendWith(FenceFixture.Reset.class)
class SlowingTest {
    private static final double FLOOR = 10;

    private final QuotaTable table = Tables.table();
    private QuotaFence fence;
    private long ms;

    @BeforeEach
    void install() {
        fence = FenceFixture.fence("none", Map.of("super.users", "User:admin"));
    }

    private void affect(double factor, String... topics) {
        Tables.affect(table, factor, topics);
    }

    private void write(String principal, String clientId, String... topics) {
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, principal, clientId), FenceFixture.write(topics));
    }

    /** Gives alice a quota of 1,000 in such a scope, and lets her write to orders, which is affected. */
    private void slow(int code) {
        Tables.publish(table, "alice", "a", code, 1_000);
        affect(0.5, "orders");
        write("alice", "a", "orders");
    }

    private void pass(long seconds) {
        for (int i = 0; i < seconds * 5; i++) {
            table.beat(ms += QuotaTable.BEAT_MS);
            table.beat(0);
        }
    }

    private Double limit(String principal, String clientId) {
        return Tables.limit(table, PRODUCE, principal, clientId);
    }

    private String user(String principal, String clientId) {
        return Tables.tags(table, principal, clientId).get("user");
    }

    @ParameterizedTest
    @CsvSource({
        "0, <slowed alice>, a", "1, <slowed alice>, ''", "2, <slowed>, a", "3, <slowed <broker>>, ''",
        "4, <slowed <newcomers alice>>, ''", "16, <slowed <group gold>>, ''",
    })
    void inEachScopeTheSlowedHaveTagsOfTheirOwnAndTheOthersKeepTheirFullLimit(int code, String user, String clientId) {
        Tables.publish(table, "alice", "a", code, 1_000, "gold");
        Tables.publish(table, "alice", "b", code, 1_000, "gold");
        Map<String, String> before = Tables.tags(table, "alice", "b");
        double full = limit("alice", "b");
        affect(0.5, "orders");

        write("alice", "a", "orders");

        assertEquals(Map.of("user", user, "client-id", clientId), new HashMap<>(Tables.tags(table, "alice", "a")));
        assertEquals(full / 2, limit("alice", "a"));
        assertEquals(before, Tables.tags(table, "alice", "b"));
        assertEquals(full, limit("alice", "b"));
    }

    /** For example, the heap is full. The next host assumes that the factor that it finds in force has its topics. */
    @Test
    void aFactorWhoseTopicsCannotBeTakenOverIsForNobody() {
        var cut = new SlowedTopics("", 0, Fence.CLOSED, new String[] {"orders"}, new String[0], Set.of());

        assertThrows(IndexOutOfBoundsException.class, () -> table.factor(0, "full", cut));
        pass(1);
        write("alice", "a", "other");
        assertEquals(1, table.factorInForce.hostFactor().value());
    }

    @Test
    void aNewcomerIsSlowedByItsFirstRequestAndWithoutAQuotaByTheStandIn() {
        Tables.publish(table, "bob", "b", Scopes.CLIENT, Double.NaN);
        affect(0.5, "orders");
        write("stranger", "x", "orders");
        write("bob", "b", "orders");

        assertEquals("<slowed <newcomers>>", user("stranger", "x"));
        assertEquals(50.0, limit("stranger", "x"));
        assertEquals(100.0, limit("other", "x"));
        assertNull(limit("bob", "b"), "before anybody has looked at what it uses");
        pass(1);
        assertEquals(50.0, limit("bob", "b")); // the newcomers' rate is used without a stand-in
    }

    @Test
    void aNewQuotaHoldsAtOnceForAClientThatWasNeverSeenUnslowed() {
        slow(Scopes.CLIENT);
        Map<String, String> tags = Tables.tags(table, "alice", "a");
        assertEquals(500.0, table.limit(PRODUCE, tags));
        pass(3);
        int before = table.factorInForce.generation(PRODUCE);

        Tables.publish(table, "alice", "a", Scopes.CLIENT, 4_000);

        assertEquals(2_000.0, table.limit(PRODUCE, tags));
        assertEquals(before + 1, table.factorInForce.generation(PRODUCE));
    }

    @Test
    void onlyTheTypesThatTheFactorMultipliesAreApart() {
        slow(Scopes.USER);
        assertEquals("alice", Tables.tags(table, FETCH, "alice", "a").get("user"));

        Tables.configure(table, FLOOR, "PRODUCE", "FETCH");
        assertEquals("<slowed alice>", Tables.tags(table, FETCH, "alice", "a").get("user"));
        assertEquals(500.0, Tables.limit(table, FETCH, "alice", "a"));
    }

    @Test
    void aMarkEndsWithItsTopicAtOnce() {
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        affect(0.5, "orders", "bills");
        write("alice", "a", "orders");
        affect(0.5, "bills");
        assertEquals(1_000.0, limit("alice", "a"));

        write("alice", "a", "orders");
        assertEquals(1_000.0, limit("alice", "a"));
        write("alice", "a", "bills");
        assertEquals(500.0, limit("alice", "a"));
    }

    @Test
    void whenTheFactorIsForAllAgainAllAreSlowedByTheirOwnTags() {
        slow(Scopes.CLIENT);
        table.factor(0.4, "unknown", null);

        assertEquals("alice", user("alice", "a"));
        assertEquals(400.0, limit("alice", "a"));
        assertEquals(40.0, limit("stranger", "x"));
        affect(0.4, "orders");
        assertEquals(1_000.0, limit("alice", "a"));
    }

    @Test
    void withoutAFenceNobodyWouldBeMarkedSoTheFactorIsForAll() {
        FenceFixture.reset();
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        affect(0.5, "orders");

        assertEquals(500.0, limit("alice", "a"));
        assertEquals(-1, table.affectedTopics());
    }

    @Test
    void theExemptTheSparedTheDeniedAndOtherRequestsMarkNobody() {
        Exemptions.set(Map.of("root", "excluded"), new String[0], "");
        Exemptions.spare(new String[] {"orders"});
        affect(0.5, "orders", "bills");
        write("root", "a", "bills");
        write("alice", "a", "orders");
        fence.authorize(FenceFixture.from(ApiKeys.FETCH, "alice", "a"), FenceFixture.write("bills"));
        var denied = FenceFixture.fence("org.apache.kafka.metadata.authorizer.StandardAuthorizer", Map.of());
        denied.completeInitialLoad();
        denied.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "a"), FenceFixture.write("bills"));
        assertEquals(0, table.marked());

        write("admin", "a", "bills"); // super users keep their quotas
        assertEquals("<slowed <newcomers>>", user("admin", "a"));
        assertEquals("<newcomers>", user("root", "b").replace("<exempt>", "<newcomers>"));
    }

    @ParameterizedTest
    @ValueSource(ints = {PRODUCE, FETCH})
    void whoBeginsWithEmptyWindowsRises(int type) {
        Tables.configure(table, FLOOR, "PRODUCE", "FETCH");
        table.configureTap(10, 1_000, 30_000);
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        Tables.publish(table, "bob", "b", Scopes.CLIENT, 1_000);
        affect(0.5, "orders");
        write("alice", "a", "orders");
        limit("bob", "b");

        assertEquals(100.0, Tables.limit(table, type, "alice", "a"), 5); // a tenth of the others' current limit
        for (int i = 0; i < 13; i++) { // afterwards its own windows are empty
            pass(1);
            write("alice", "a", "orders");
            limit("bob", "b");
            limit("alice", "a");
        }
        affect(0.5, "bills");
        table.beat(0);
        assertEquals(100.0, Tables.limit(table, type, "alice", "a"), 10);
        assertEquals(1_000.0, Tables.limit(table, type, "bob", "b"));
    }

    /** Fetches and other requests with the own tags fill none of the windows of PRODUCE. */
    @Test
    void whoUsedItsOwnTagsForOtherTypesMeanwhileRisesToo() {
        table.configureTap(10, 1_000, 30_000);
        slow(Scopes.CLIENT);
        for (int i = 0; i < 13; i++) {
            write("alice", "a", "orders");
            for (int type = 0; type < QuotaTable.TYPES; type++) Tables.tags(table, type, "alice", "a");
            pass(1);
        }
        affect(0.5, "bills");
        table.beat(0);

        assertEquals(100.0, limit("alice", "a"), 10);
    }

    @Test
    void whoAsksForItsTagsWhileItsMarkEndsRisesLikeTheOthers() throws Exception {
        table.configure(10_000, 3_600, FLOOR, new String[] {"PRODUCE"}, Tables.NEWCOMERS, Tables.ALL);
        table.configureTap(10, 1_000, 30_000);
        List<String> ids = IntStream.range(0, 1_000).mapToObj(i -> "id-" + i).toList();
        ids.forEach(id -> Tables.publish(table, "alice", id, Scopes.CLIENT, 1_000));
        affect(0.5, "orders");
        for (int i = 0; i < 13; i++) {
            ids.forEach(id -> write("alice", id, "orders"));
            ids.forEach(id -> Tables.tags(table, "alice", id));
            pass(1);
        }
        AtomicBoolean done = new AtomicBoolean();
        CountDownLatch begins = new CountDownLatch(1);
        Thread requests = new Thread(() -> {
            while (!done.get()) {
                ids.forEach(id -> Tables.tags(table, "alice", id));
                begins.countDown();
            }
        });
        requests.start();
        begins.await();

        affect(0.5, "bills");

        done.set(true);
        requests.join();
        ids.forEach(id -> assertEquals(100.0, limit("alice", id), 10, id));
    }

    /** For example, the machine is too busy: a request thread is suspended for 10 s in the middle of its look-up. */
    @Test
    void aRequestThatStandsStillKeepsNobodyFromRisingToItsWholeLimit() {
        slow(Scopes.CLIENT);
        Tables.publish(table, "bob", "b", Scopes.CLIENT, 1_000);
        table.configureTap(10, 1_000, 30_000);
        table.tags(PRODUCE, new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "alice") {
            @Override
            public String getName() {
                pass(9);
                goOn("bob", "b", 1);
                return super.getName();
            }
        }, "a");
        assertEquals(50.0, limit("alice", "a"), 5);

        for (int i = 0; i < 14; i++) {
            write("alice", "a", "orders"); // otherwise the end of its mark would make all limits anew
            goOn("bob", "b", 1);
        }
        assertEquals(500.0, limit("bob", "b"));
    }

    /** A suspended request thread may mark a client when no topic is affected any more. */
    @Test
    void aMarkThatComesAfterAllOthersHaveEndedEndsToo() {
        affect(0.5, "orders");
        Marks.Affected affected = table.factorInForce.rule().affected();
        table.factor(1, "", null);
        affected.mark(Tables.principal("alice"), "a", "orders");
        pass(2);
        assertEquals(0, table.marked());
    }

    /** A suspended request thread may have read the clock before its client's mark ended and began again. */
    @Test
    void aRequestThatComesLateHasNobodyRiseAnew() {
        slow(Scopes.CLIENT);
        table.configureTap(10, 1_000, 30_000);
        Tags tags = (Tags) Tables.tags(table, "alice", "a");
        int read = table.now;
        pass(1);
        affect(0.5, "bills");
        affect(0.5, "orders");
        goOn("alice", "a", 14);
        assertEquals(500.0, limit("alice", "a"));

        tags.note(PRODUCE, read, table.factorInForce.rule());

        goOn("alice", "a", 2);
        assertEquals(500.0, limit("alice", "a"));
    }

    @Test
    void whoIsMarkedAndPausesKeepsItsLimitWhateverElseChanges() {
        slow(Scopes.CLIENT);
        Tables.publish(table, "bob", "b", Scopes.CLIENT, 1_000);
        limit("bob", "b");
        table.configureTap(10, 1_000, 30_000);
        goOn("alice", "a", 14);
        pass(13); // its mark stays alive, and Kafka's windows are empty
        goOn("alice", "a", 1);
        assertEquals(500.0, limit("alice", "a"));

        Tables.publish(table, "bob", "b", Scopes.CLIENT, 2_000);

        goOn("alice", "a", 14);
        assertEquals(500.0, limit("alice", "a"));
    }

    private void goOn(String principal, String clientId, int seconds) {
        for (int i = 0; i < seconds; i++) {
            pass(1);
            write(principal, clientId, "orders");
            limit(principal, clientId);
        }
    }

    @Test
    void whoIsMarkedAndGetsAnotherScopeRisesToItsWholeLimit() {
        slow(Scopes.CLIENT);
        table.configureTap(10, 1_000, 30_000);
        goOn("alice", "a", 14);
        assertEquals(500.0, limit("alice", "a"));

        Tables.publish(table, "alice", "a", Scopes.USER, 1_000);

        assertEquals(50.0, limit("alice", "a"), 5);
        goOn("alice", "a", 14);
        assertEquals(500.0, limit("alice", "a"));
    }

    @Test
    void aNewcomerWhoseSecondRequestComesLaterRisesToItsWholeLimit() {
        affect(0.5, "orders");
        table.configureTap(10, 1_000, 30_000);
        goOn("stranger", "x", 1);
        Tables.publish(table, "stranger", "x", Scopes.CLIENT, 1_000);
        pass(8);

        goOn("stranger", "x", 14);
        assertEquals(500.0, limit("stranger", "x"));
    }

    @Test
    void whoseOwnWindowsAreNotEmptyHasItsFullLimitAtOnce() {
        table.configureTap(10, 1_000, 30_000);
        Tables.publish(table, "alice", "a", Scopes.USER, 1_000);
        Tables.publish(table, "alice", "b", Scopes.USER, 1_000);
        affect(0.5, "orders");
        write("alice", "a", "orders");
        for (int i = 0; i < 13; i++) {
            pass(1);
            write("alice", "a", "orders");
            limit("alice", "b"); // client-id b uses the shared scope
        }
        affect(0.5, "bills");
        table.beat(0);

        assertEquals(1_000.0, limit("alice", "a"));
    }

    /** Returns the own tags of a client that was slowed for 10 s and has sent nothing since. */
    private Map<String, String> ownTagsAsTheMarkEnds() {
        table.configureTap(10, 1_000, 30_000);
        slow(Scopes.CLIENT);
        limit("alice", "a");
        pass(10);
        Map<String, String> own = new HashMap<>(Map.of("user", "alice", "client-id", "a"));
        affect(0.5, "bills");
        return own;
    }

    /** By then Kafka has forgotten what was sent with the slowed tags. */
    @Test
    void whoIsSilentAfterItsMarkEndedHasItsFullLimitOnceKafkasWindowsAreEmpty() {
        Map<String, String> own = ownTagsAsTheMarkEnds();
        assertTrue(table.limit(PRODUCE, own) < 200);
        pass(13);

        assertEquals(1_000.0, table.limit(PRODUCE, own));
    }

    /** For example, the process was stopped for longer than Kafka looks back, and the host was quicker than the watch. */
    @Test
    void whoseMarkEndsWhileTheWatchStandsStillHasItsFullLimitOnceKafkasWindowsAreEmpty() {
        Map<String, String> own = ownTagsAsTheMarkEnds();
        table.beat(ms += 20_000);
        table.beat(ms += QuotaTable.BEAT_MS);

        assertEquals(1_000.0, table.limit(PRODUCE, own));
    }

    @Test
    void nothingIsAllocatedForWhomItDoesNotConcernNorForAMarkedClient() {
        Tables.publish(table, "alice", "a", Scopes.USER, 1_000);
        Tables.publish(table, "bob", "b", Scopes.CLIENT, 1_000);
        KafkaPrincipal alice = Tables.principal("alice");
        KafkaPrincipal bob = Tables.principal("bob");
        var elsewhere = FenceFixture.from(ApiKeys.PRODUCE, "bob", "b");
        var there = FenceFixture.from(ApiKeys.PRODUCE, "alice", "a");
        var other = FenceFixture.write("other");
        var orders = FenceFixture.write("orders");
        long open = FenceFixture.bytesPerCall(() -> fence.authorize(elsewhere, other));
        affect(0.5, "orders");
        write("alice", "a", "orders");

        assertEquals(0, FenceFixture.bytesPerCall(() -> table.tags(PRODUCE, bob, "b")));
        assertEquals(0, FenceFixture.bytesPerCall(() -> table.tags(PRODUCE, alice, "a")));
        assertEquals(open, FenceFixture.bytesPerCall(() -> fence.authorize(elsewhere, other)));
        assertEquals(open, FenceFixture.bytesPerCall(() -> fence.authorize(there, orders)));
    }

    /** A factor that moves makes a rule at each beat, and each may have the names of thousands of topics. */
    @Test
    void aClientThatFetchesNoMoreKeepsNoRule() {
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        affect(0.5, "orders");
        assertEquals(1_000, Tables.limit(table, FETCH, "alice", "a"));
        var rule = new WeakReference<>(table.factorInForce.rule());

        affect(0.4, "orders");

        System.gc();
        assertNull(rule.get());
    }
}
