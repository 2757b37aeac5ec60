package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.limit;
import static org.quotahost.table.Tables.publish;
import static org.quotahost.table.Tables.tags;

import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.DoubleRange;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;

/** Tests tags and limits of clients, from the first request to the last, and when the table forgets a client. */
class QuotaTableTest {
    private static final double UNLIMITED = Double.NaN;
    private static final Map<String, String> NEWCOMER = Map.of("user", "<newcomers>", "client-id", "");

    private final Inbox inbox = new Inbox();
    private final QuotaTable table = Tables.table(inbox, 100, 3_600);

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
    void aFullTableAdmitsNoClientAndForgetsNone() {
        QuotaTable small = Tables.table(inbox, 3, 3_600);
        for (String name : List.of("u", "v", "w", "x")) publish(small, name, "a", Scopes.CLIENT, 1_000);
        assertEquals(3, small.size());
        assertEquals(NEWCOMER, tags(small, "x", "a"));
        assertEquals(List.of(), Inboxes.drain(inbox), "nor is the host asked in vain");
        assertEquals(1, small.unadmitted.sum());
        assertEquals(1_000.0, limit(small, PRODUCE, "u", "a"));
    }

    @Test
    void theFallbackIsInForceWhileItIsSetAndTheHostsFactorAfterwards() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        table.factor(0.5, "", null);
        table.fallback(0.0);
        assertEquals(10.0, limit(table, PRODUCE, "alice", "a"));
        table.factor(0.7, "", null);
        assertEquals(10.0, limit(table, PRODUCE, "alice", "a"));
        table.fallback(null);
        assertEquals(700.0, limit(table, PRODUCE, "alice", "a"));
    }

    @Test
    void eachQuotaTypeHasAScopeAndARateOfItsOwn() {
        answer("alice", "app", new int[] {Scopes.CLIENT, Scopes.USER, Scopes.CLIENT_ID, Scopes.ALL}, new double[] {100, 200, 50, 7});

        assertEquals(Map.of("user", "alice", "client-id", "app"), tags(table, 0, "alice", "app"));
        assertEquals(Map.of("user", "alice", "client-id", ""), tags(table, 1, "alice", "app"));
        assertEquals(Map.of("user", "", "client-id", "app"), tags(table, 2, "alice", "app"));
        assertEquals(Map.of("user", "<broker>", "client-id", ""), tags(table, 3, "alice", "app"));
        assertEquals(List.of(100.0, 200.0, 50.0, 7.0),
                IntStream.range(0, QuotaTable.TYPES).mapToObj(type -> limit(table, type, "alice", "app")).toList());
    }

    @Test
    void oneTypeWhoseSupplierFailsLeavesTheOthersAlone() {
        answer("alice", "app", new int[] {Scopes.NEWCOMER, Scopes.CLIENT, Scopes.CLIENT, Scopes.CLIENT},
                new double[] {UNLIMITED, 200, 50, 7});

        assertEquals("<newcomers alice>", tags(table, PRODUCE, "alice", "app").get("user"));
        assertEquals(200.0, limit(table, FETCH, "alice", "app"));
        assertEquals(List.of("alice/app"), failed());

        answer("alice", "app", new int[] {Scopes.CLIENT, Scopes.NEWCOMER, Scopes.CLIENT, Scopes.CLIENT},
                new double[] {100, UNLIMITED, 50, 7});

        assertEquals(100.0, limit(table, PRODUCE, "alice", "app"));
        assertEquals(200.0, limit(table, FETCH, "alice", "app"), "the last one is kept");
        assertEquals(List.of("alice/app"), failed());

        publish(table, "alice", "app", Scopes.CLIENT, 300);
        assertEquals(List.of(), failed());
    }

    @Test
    void aGroupIsOneWithinAndAcrossBatchesAndNoOther() {
        publish(table, "alice", "a", Scopes.GROUP, 1_000, "gold");
        publish(table, "bob", "b", Scopes.GROUP + 1, 1_000, "silver", "gold");
        publish(table, "carol", "c", Scopes.GROUP, 3_000, "silver", "gold");
        publish(table, "gold", "", Scopes.CLIENT, 4_000);

        assertSame(tags(table, PRODUCE, "alice", "a"), tags(table, PRODUCE, "bob", "b"));
        assertNotEquals(tags(table, PRODUCE, "alice", "a"), tags(table, PRODUCE, "carol", "c"));
        assertEquals(List.of(1_000.0, 3_000.0, 4_000.0),
                List.of(limit(table, PRODUCE, "bob", "b"), limit(table, PRODUCE, "carol", "c"), limit(table, PRODUCE, "gold", "")));
    }

    @Test
    void knownClientsAreFoundByPrincipalByClientIdByBothOrAll() {
        for (String principal : List.of("alice", "bob")) {
            for (String id : List.of("x", "y")) publish(table, principal, id, Scopes.CLIENT, 1_000);
        }

        assertEquals(List.of("alice/x", "alice/y"), again("alice", null));
        assertEquals(List.of("alice/y", "bob/y"), again(null, "y"));
        assertEquals(List.of("bob/x"), again("bob", "x"));
        assertEquals(4, again(null, null).size());
    }

    /** Kafka accepts no limit that is 0 or infinite, and mutes longer the smaller the limit is. */
    @Property
    void whateverRateAndFactorALimitIsFiniteAndBetweenFloorAndRate(@ForAll("rates") double rate,
            @ForAll @DoubleRange(max = 1) double factor) {
        QuotaTable any = Tables.table();
        Tables.configure(any, 35_000, Tables.ALL);
        publish(any, "alice", "a", Scopes.CLIENT, rate);
        any.factor(factor, "", null);
        for (ClientQuotaType type : ClientQuotaType.values()) {
            double limit = limit(any, type.ordinal(), "alice", "a");
            assertTrue(limit > 0 && Double.isFinite(limit), () -> "limit " + limit);
            assertTrue(limit <= rate && limit >= rate * factor && limit >= Math.min(rate, any.factorInForce.floor(type)));
        }
    }

    @Provide
    Arbitrary<Double> rates() {
        Arbitrary<Double> anywhere = Arbitraries.integers().between(-320, 308).map(exponent -> Math.pow(10, exponent));
        Arbitrary<Double> likely = Arbitraries.doubles().between(0.000001, 1e9).ofScale(6);
        return Arbitraries.oneOf(anywhere, likely, Arbitraries.of(Double.MIN_VALUE, Double.MAX_VALUE, 34_999.99, 35_000.0));
    }

    @Test
    void withoutAQuotaForItselfAndNewcomersAClientIsUnlimitedUntilTheFactorIsNothing() {
        double[] none = {UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED};
        table.configure(100, 3_600, 10, new String[] {"PRODUCE"}, none, Tables.ALL);
        publish(table, "alice", "a", Scopes.CLIENT, UNLIMITED);
        assertNull(limit(table, PRODUCE, "alice", "a"));
        table.factor(0.01, "", null);
        assertNull(limit(table, PRODUCE, "alice", "a"));
        table.factor(0, "", null);
        for (int beat = 1; beat <= 2; beat++) table.beat(beat * QuotaTable.BEAT_MS); // stand-ins are measured first
        assertEquals(10.0, limit(table, PRODUCE, "alice", "a"));
    }

    private List<String> again(String principal, String clientId) {
        table.askAgain(principal, clientId);
        return Inboxes.drain(inbox).stream().sorted().toList();
    }

    private List<String> failed() {
        table.askAgainTheFailed();
        return Inboxes.drain(inbox);
    }

    private void answer(String principal, String clientId, int[] codes, double[] rates) {
        publish(table, new Batch(List.of(new Batch.Lookup(principal, clientId, 0)), List.of()), codes, rates, new String[0]);
    }

    // ---- forgotten ----

    private static final int IDLE = QuotaTable.TICKS_PER_IDLE + 1;

    @ParameterizedTest
    @ValueSource(ints = {Scopes.CLIENT, Scopes.USER})
    void silenceUpToTheWholeOfIdleIsForgivenAndNotMoreOfAClientAsOfAPrincipal(int code) {
        Tables.publishWhole(table, "u", "a", code, 1_000);
        for (int round = 0; round < 2; round++) {
            for (int tick = 0; tick < QuotaTable.TICKS_PER_IDLE; tick++) Tables.tick(table);
            assertEquals(1, table.size());
            Tables.tags(table, PRODUCE, "u", "a");
        }
        for (int tick = 0; tick < IDLE; tick++) Tables.tick(table);
        assertEquals(0, table.size());
        assertEquals(1, table.evicted.sum());
    }

    @Test
    void tagsThatNoClientHasHadForLongAreForgottenToo() {
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        var tags = new java.util.HashMap<>(Tables.tags(table, PRODUCE, "u", "a"));
        for (int tick = 0; tick < 3 * IDLE; tick++) Tables.tick(table);

        assertEquals(100.0, table.limit(PRODUCE, tags), "as of unknown tags: the newcomers'");
    }

    @Test
    void theNewcomersTagsAreNeverForgotten() {
        publish(table, "u", "a", Scopes.NEWCOMER, Double.NaN);
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        for (int tick = 0; tick < 3 * IDLE; tick++) Tables.tick(table);

        table.factor(0.5, "", null);
        assertEquals(50.0, table.limit(PRODUCE, table.newcomers));
    }

    /** A broker may run for years, a beat is a fifth of a second, and clients.idle may be longer than the beats' range. */
    @ParameterizedTest
    @ValueSource(longs = {3_600, 20 * 365 * 86_400L})
    void aClientThatGoesOnIsKnownForYears(long idle) {
        table.configure(100, idle, 10, new String[] {"PRODUCE"}, Tables.NEWCOMERS, Tables.ALL);
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        publish(table, "w", "a", Scopes.USER, 1_000);
        for (long days = 1; days < 1_500; days += 50) {
            table.beat(days * 86_400_000);
            Tables.tags(table, PRODUCE, "u", "a");
            Tables.tags(table, PRODUCE, "w", "a");
            table.evict();
            assertEquals(2, table.size());
            assertEquals(1_000.0, Tables.limit(table, PRODUCE, "u", "a"));
        }
        for (int tick = 0; tick < IDLE; tick++) Tables.tick(table);
        assertEquals(0, table.size());
    }
}
