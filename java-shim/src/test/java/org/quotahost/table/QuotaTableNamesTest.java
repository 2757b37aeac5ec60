package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.limit;
import static org.quotahost.table.Tables.publish;
import static org.quotahost.table.Tables.publishWhole;
import static org.quotahost.table.Tables.tags;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.constraints.StringLength;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.Proves;
import org.quotahost.fence.Exemptions;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.inbox.Inboxes;
import org.quotahost.util.Names;

/** A client-id is only a claim: tests what a client gains by its claims and what they cost, whatever their number. */
class QuotaTableNamesTest {
    private static final String LONG = "x".repeat(Names.LONGEST_CLIENT_ID + 1);
    private static final double UNLIMITED = Double.NaN;

    private final Inbox inbox = new Inbox();
    private final QuotaTable table = Tables.table(inbox, 100, 3_600);

    @AfterEach
    void nobodyIsExempt() {
        Exemptions.set(Map.of(), new String[0], "");
    }

    @Test
    void aPrincipalWhoseQuotaDoesNotDependOnTheClientIdIsKnownWhateverClientIdComesNext() {
        publishWhole(table, "alice", "a", Scopes.USER, 1_000);

        for (int i = 0; i < 10_000; i++) assertEquals(Map.of("user", "alice", "client-id", ""), tags(table, "alice", "new-" + i));
        assertEquals(1_000.0, limit(table, PRODUCE, "alice", LONG));
        assertEquals(List.of(), Inboxes.drain(inbox), "nobody has to be asked");
        assertEquals(1, table.size());
        assertEquals(0, table.misses.sum());
    }

    @Test
    void aDistinctClientIdHasAQuotaOfItsOwnAndUntilItIsKnownThatOfTheOthers() {
        publishWhole(table, "alice", "a", Scopes.USER, 1_000, "app");

        assertEquals(1_000.0, limit(table, PRODUCE, "alice", "app"));
        assertEquals(List.of("alice/app"), Inboxes.drain(inbox));
        publishWhole(table, "alice", "app", Scopes.CLIENT, 5_000, "app");

        assertEquals(5_000.0, limit(table, PRODUCE, "alice", "app"));
        assertEquals(1_000.0, limit(table, PRODUCE, "alice", "other"));
    }

    @Test
    void aDistinctClientIdThatComesFirstTellsNothingOfTheOthers() {
        publishWhole(table, "alice", "app", Scopes.CLIENT, 5_000, "app");

        assertEquals(100.0, limit(table, PRODUCE, "alice", "other"), "newcomers of alice");
        publishWhole(table, "alice", "other", Scopes.USER, 1_000, "app");

        assertEquals(1_000.0, limit(table, PRODUCE, "alice", "another"));
        assertEquals(5_000.0, limit(table, PRODUCE, "alice", "app"));
    }

    @Test
    void aClientWithProduceTagsOfItsOwnIsPostedByItsFirstRequestOfAnyType() {
        int[] codes = {Scopes.CLIENT, Scopes.USER, Scopes.USER, Scopes.USER};
        double[] rates = {1_000, UNLIMITED, UNLIMITED, UNLIMITED};
        var batch = new Batch(List.of(new Batch.Lookup("alice", "a", System.nanoTime())), List.of());
        publish(table, batch, codes, rates, new String[0], Set.of());

        assertEquals("alice", table.tags(FETCH, Tables.principal("alice"), "new").get("user"));
        assertEquals(List.of("alice/new"), Inboxes.drain(inbox), "it will be known before it produces");
    }

    @Test
    void unknownClientIdsOfAPrincipalShareTheRateThatEachWillHave() {
        publishWhole(table, "alice", "a", Scopes.CLIENT, 1);
        assertEquals(100.0, limit(table, PRODUCE, "alice", "new"), "many at once are not muted for a small rate of one");
        publishWhole(table, "alice", "a", Scopes.CLIENT, 1_000);

        Map<String, String> shared = tags(table, "alice", "new-1");
        assertEquals(shared, tags(table, "alice", "new-2"));
        assertEquals(shared, tags(table, "alice", LONG));
        assertEquals("<newcomers alice>", shared.get("user"));
        assertEquals(1_000.0, table.limit(PRODUCE, shared));
        assertEquals(Map.of("user", "<newcomers>", "client-id", ""), tags(table, "bob", "b"), "which they leave alone");
    }

    @Test
    void whoChangesItsClientIdAllTheTimeLeavesPlacesForOtherPrincipals() {
        for (int i = 0; i < 1_000; i++) publishWhole(table, "mallory", "m" + i, Scopes.CLIENT, 1_000);
        assertEquals(46, table.size(), "and as many are left for others");
        for (int i = 0; i < 1_000; i++) publishWhole(table, "trudy", "t" + i, Scopes.CLIENT, 1_000);
        for (int i = 0; i < 10; i++) publishWhole(table, "alice", "a" + i, Scopes.CLIENT, 2_000);
        assertEquals(2_000.0, limit(table, PRODUCE, "alice", "a9"));

        for (int i = 0; i < 100; i++) publishWhole(table, "u" + i, "c", Scopes.CLIENT, 3_000);
        assertEquals(3_000.0, limit(table, PRODUCE, "u15", "c"), "the last tenth is for principals alone");
    }

    @Test
    void namesBeyondASaneLengthAreNeverPostedNorKeptAndThoseOfAPrincipalsClientsAreOneClient() {
        assertEquals("<newcomers>", tags(table, "alice", LONG).get("user"));
        tags(table, "alice", LONG + "y");
        tags(table, "y".repeat(Names.LONGEST_PRINCIPAL + 1), "a");
        assertEquals(List.of("alice/<long>"), Inboxes.drain(inbox));

        publishWhole(table, "alice", "<long>", Scopes.CLIENT, 1_000);
        assertEquals(1_000.0, limit(table, PRODUCE, "alice", LONG), "one name escapes no quota that each client-id has");
        assertEquals(tags(table, "alice", LONG), tags(table, "alice", LONG + "y"), "nor do many");
        for (String end : List.of("\r", "\u0085", "\u2028", "\u2029")) {
            assertEquals(tags(table, "alice", LONG), tags(table, "alice", "a" + end + "b"), "nor does one that JMX can't show");
        }
        Map<?, ?> shown = (Map<?, ?>) ((List<?>) new Dump(table).client("alice", LONG).get("quotas")).get(PRODUCE);
        assertEquals(1_000.0, shown.get("base"));
        assertEquals(1, table.size());
    }

    @Test
    void nothingIsMadeForWhoIsNotAdmitted() {
        IntStream.range(0, 200).forEach(i -> publishWhole(table, "u" + i, "c", Scopes.CLIENT, 1_000));
        int before = Tables.scopes(table);

        for (int i = 0; i < 4_000; i++) publish(table, i % 2 == 0 ? "mallory" : "u1", "m" + i, Scopes.CLIENT, 1_000);

        assertEquals(100, table.size());
        assertEquals(before, Tables.scopes(table));
    }

    /** Principals with one hash share the slot where quick look-ups end. */
    @Test
    void theLastAnswerIsFoundWhateverWasThereBeforeAlsoWherePrincipalsHaveOneHash() {
        double rate = 1_000;
        for (int round = 0; round < 20; round++) {
            for (String user : List.of("Aa", "BB")) {
                for (String id : List.of("x", "y")) publishWhole(table, user, id, Scopes.CLIENT, ++rate);
                assertEquals(rate, limit(table, PRODUCE, user, "y"));
                assertEquals(rate - 1, limit(table, PRODUCE, user, "x"));
                publishWhole(table, user, "x", Scopes.USER, ++rate);
                for (String id : List.of("x", "y", "z")) assertEquals(rate, limit(table, PRODUCE, user, id));
            }
        }
    }

    /** If the heap is full between the two, the principal comes later: no look-up may end for good at its earlier client. */
    @Test
    void aLookUpEndsAtAClientOnceItsPrincipalIsThere() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        var alice = table.principals.entry("alice");
        Principals principals = new Principals();

        principals.put(alice, alice.client("a"));
        assertNull(principals.quick("alice", "a"));
        principals.put(alice);
        assertEquals(alice.client("a"), principals.quick("alice", "a"));
    }

    @Proves("kip-13.metrics")
    @Test
    void whoHasNoQuotaSharesOneSensorUnlessTheTypeIsMeasured() {
        table.configure(100, 3_600, 10, new String[] {"PRODUCE"}, Tables.NEWCOMERS, new String[] {"PRODUCE"});
        publishWhole(table, "alice", "a", Scopes.CLIENT, UNLIMITED);
        publishWhole(table, "bob", "b", Scopes.USER, UNLIMITED);

        assertEquals(Map.of("user", "alice", "client-id", "a"), tags(table, "alice", "a"));
        assertEquals(tags(table, FETCH, "bob", "b"), tags(table, FETCH, "alice", "a"));
        assertEquals("<unlimited>", tags(table, FETCH, "alice", "new").get("user"));
        assertNull(limit(table, FETCH, "alice", "a"));
    }

    @Test
    void theExemptAreExemptFromTheirFirstRequestOnAlsoWhenTheTableIsFull() {
        Exemptions.set(Map.of("root", "excluded"), new String[] {"4"}, "broker-#-*");
        QuotaTable full = Tables.table(inbox, 0, 3_600);
        for (QuotaTable each : List.of(table, full)) {
            each.factor(0, "", null);
            for (String[] exempt : new String[][] {{"root", "x"}, {"root", LONG}, {"ANONYMOUS", "4"}, {"ANONYMOUS", "broker-1-a"}}) {
                assertEquals("<exempt>", tags(each, exempt[0], exempt[1]).get("user"));
                assertNull(limit(each, PRODUCE, exempt[0], exempt[1]));
            }
            assertEquals(10.0, limit(each, PRODUCE, "ANONYMOUS", "5"), "the floor");
            assertEquals(10.0, limit(each, PRODUCE, "ANONYMOUS", "broker-1-" + LONG), "no broker's name");
        }
    }

    @Test
    void theExemptHaveTheirReasonAndTakeNoPlaceAndTheHostIsAskedForTheOthersAlone() {
        Exemptions.set(Map.of("root", "excluded"), new String[] {"quotahost-4"}, "broker-#-*");
        String[][] reasons = {{"root", "x", "excluded"}, {"ANONYMOUS", "quotahost-4", "plugin"}, {"ANONYMOUS", "broker-1-a", "broker"}};
        for (String[] exempt : reasons) tags(table, exempt[0], exempt[1]);
        tags(table, "alice", "quotahost-4");

        assertEquals(List.of("alice/quotahost-4"), Inboxes.drain(inbox));
        assertEquals(0, table.size());
        for (String[] exempt : reasons) {
            Map<?, ?> quota = (Map<?, ?>) ((List<?>) new Dump(table).client(exempt[0], exempt[1]).get("quotas")).get(PRODUCE);
            assertEquals(exempt[2], quota.get("supplier"));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whoBecomesExemptAfterTheHostHasAnsweredOrWhileItDoesIsExemptAndHasNoPlaceUntilThatEnds(boolean meanwhile) {
        var asked = List.of(new Batch.Lookup("ANONYMOUS", "4", 0), new Batch.Lookup("root", "x", 0),
                new Batch.Lookup("root", "y", 0));
        double[] rates = DoubleStream.generate(() -> 7).limit(12).toArray();
        Runnable answer = () -> Tables.publish(table, new Batch(asked, List.of()), new int[12], rates, new String[0], Set.of());
        if (!meanwhile) answer.run();
        Exemptions.set(Map.of("root", "excluded"), new String[] {"4"}, "");
        table.forgetExempt();
        if (meanwhile) answer.run();

        for (var each : asked) assertNull(limit(table, PRODUCE, each.principal(), each.clientId()));
        assertNull(limit(table, PRODUCE, "root", "z"));
        assertEquals(100.0, limit(table, PRODUCE, "ANONYMOUS", "5"), "a newcomer");
        assertNull(table.principals.entry("root"));
        Exemptions.set(Map.of(), new String[0], "");
        assertEquals(100.0, limit(table, PRODUCE, "root", "x"), "a newcomer");
    }

    @Test
    void anExemptClientIdOfAnonymousStaysSoWhereAnonymousIsKnownAsAWhole() {
        Exemptions.set(Map.of(), new String[] {"4"}, "");
        publishWhole(table, "ANONYMOUS", "app", Scopes.USER, 1_000);

        assertNull(limit(table, PRODUCE, "ANONYMOUS", "4"));
        assertEquals(1_000.0, limit(table, PRODUCE, "ANONYMOUS", "5"));
        assertEquals(true, new Dump(table).client("ANONYMOUS", "4").get("exempt"));
    }

    /** For example, a broker that Kafka had not reported yet. The host is never asked about exempt clients. */
    @Test
    void whatHoldsForAPrincipalIsAskedForByAClientIdThatIsNotExempt() {
        publishWhole(table, "ANONYMOUS", "4", Scopes.USER, 1_000);
        Exemptions.set(Map.of(), new String[] {"4"}, "");
        table.forgetExempt();

        table.askAgain(null, null);
        assertEquals(List.of("ANONYMOUS/"), Inboxes.drain(inbox));
        publishWhole(table, "ANONYMOUS", "", Scopes.USER, 2_000);
        assertEquals(2_000.0, limit(table, PRODUCE, "ANONYMOUS", "any"));
    }

    @Test
    void aPrincipalIsAskedForThoughThereIsNoPlaceForAFurtherClientOfIt() {
        QuotaTable small = Tables.table(inbox, 1, 3_600);
        publishWhole(small, "alice", "distinct", Scopes.CLIENT, 5_000, "distinct");
        assertEquals(1, small.size());

        tags(small, "alice", "app");
        assertEquals(List.of("alice/app"), Inboxes.drain(inbox));
        publishWhole(small, "alice", "app", Scopes.USER, 1_000, "distinct");

        assertEquals(1_000.0, limit(small, PRODUCE, "alice", "any"));
        assertEquals(5_000.0, limit(small, PRODUCE, "alice", "distinct"));
    }

    @Test
    void withAFullTableTooTheyShareANewcomersQuotaAfterThat() {
        QuotaTable small = Tables.table(inbox, 1, 3_600);
        publishWhole(small, "alice", "distinct", Scopes.CLIENT, 5_000, "distinct");
        publishWhole(small, "alice", "first", Scopes.USER, 1_000, "distinct");
        small.beat(1_000);
        small.askAgain(null, null);
        Batch again = inbox.take(0);
        assertEquals("first", again.clients().get(0).clientId(), "the distinct one would tell nothing of the others");
        Tables.publish(small, again, new int[8], new double[] {7, 7, 7, 7, 7, 7, 7, 7}, new String[0], Set.of());
        assertEquals("alice", tags(small, "alice", "x").get("user"));
        for (int ms = 1_000; ms < 10_000; ms += 200) small.beat(ms);
        assertEquals("<newcomers alice>", tags(small, "alice", "x").get("user"));
    }

    @Test
    void whenTheClientIdBeginsToMatterAllKeepWhatTheyHadUntilTheyAreKnown() {
        publishWhole(table, "alice", "a", Scopes.USER, 1_000);
        Map<String, String> former = tags(table, "alice", "b");

        publishWhole(table, "alice", "a", Scopes.CLIENT, 300);

        assertEquals(300.0, limit(table, PRODUCE, "alice", "a"));
        assertEquals(former, tags(table, "alice", "b"));
        assertEquals(1_000.0, limit(table, PRODUCE, "alice", "b"));
        publishWhole(table, "alice", "b", Scopes.CLIENT, 300);
        assertEquals("b", tags(table, "alice", "b").get("client-id"));

        table.beat(10_000);
        assertEquals(300.0, limit(table, PRODUCE, "alice", "d"), "not for longer than that takes");
    }

    @Test
    void whenTheClientIdNoLongerMattersItsClientsAreForgottenButForTheDistinct() {
        for (String id : List.of("a", "b", "c")) publishWhole(table, "alice", id, Scopes.CLIENT, 300);
        assertEquals(3, table.size());

        publishWhole(table, "alice", "a", Scopes.USER, 1_000, "c");

        assertEquals(1, table.size());
        assertEquals(1_000.0, limit(table, PRODUCE, "alice", "b"));
        assertEquals(300.0, limit(table, PRODUCE, "alice", "c"));
    }

    @Test
    void thePrincipalIsAskedForAgainByAClientIdThatIsKnownOnceItsQuotaDependsOnIt() {
        publishWhole(table, "alice", "a", Scopes.USER, 1_000);
        table.askAgain("alice", "app");
        Batch again = inbox.take(0);
        assertEquals(List.of("alice", "a"), List.of(again.clients().get(0).principal(), again.clients().get(0).clientId()));

        Tables.publish(table, again, new int[QuotaTable.TYPES], new double[] {7, 7, 7, 7}, new String[0], Set.of());

        assertEquals(1, table.size());
        assertEquals("a", tags(table, "alice", "a").get("client-id"));
        assertEquals("alice", tags(table, "alice", "b").get("user"), "what it had, until it is known");
        assertEquals(List.of("alice/b"), Inboxes.drain(inbox));
    }

    /** Whatever names come and in whatever order the answers change, the table is bounded and every client has tags. */
    @Property(tries = 500)
    void anyNamesHaveTagsOfTheirPrincipalOrOfTheNewcomersAndTheTableIsBounded(
            @ForAll @Size(max = 40) List<@StringLength(max = 300) String> ids, @ForAll @IntRange(min = 1, max = 10) int max,
            @ForAll @Size(min = 1, max = 8) List<@IntRange(min = 0, max = 9) Integer> steps) {
        QuotaTable any = Tables.table(new Inbox(), max, 3_600);
        int at = 0;
        for (String id : ids) {
            int step = steps.get(at++ % steps.size());
            String user = "u" + step % 2;
            if (step < 4) publish(any, user, id, step, 1_000 + step);
            else if (step < 8) publishWhole(any, user, id, step - 4, 1_000 + step, step == 7 ? ids.get(0) : "none");
            else Tables.tick(any);
            for (String other : ids) {
                String tag = tags(any, user, other).get("user");
                assertTrue(List.of("", user, "<broker>", "<newcomers>", "<newcomers " + user + ">").contains(tag), tag);
                limit(any, PRODUCE, user, other);
            }
            assertTrue(any.size() <= max, () -> any.size() + " of " + max);
            assertTrue(Tables.scopes(any) <= 5 * max + 8, () -> Tables.scopes(any) + " pairs of tags");
        }
    }
}
