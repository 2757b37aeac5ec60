package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import javax.management.JMException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.Creation;
import org.quotahost.fence.FenceFixture;
import org.quotahost.inbox.Batch;
import org.quotahost.util.HeldBack;

/** Who would be held back by suppliers and the factor in shadow: for how long, and by how many bytes. */
class ShadowsTest {
    private static final String TRIED = "supplier.tried";

    private final QuotaTable table = Tables.table();
    private final KafkaBeans kafka = new KafkaBeans();
    private long nanos = 5_000_000_000_000L;

    @AfterEach
    void close() {
        kafka.close();
        Creation.pause(false);
        FenceFixture.reset();
    }

    /** Publishes an answer of the supplier "old", and beside it what the supplier "tried" would give; no answer for NaN. */
    private void publish(String principal, String clientId, int code, double rate, int wouldCode, double wouldRate, ClientIds distinct) {
        int[] codes = new int[Tags.TYPES];
        double[] rates = new double[Tags.TYPES];
        Arrays.fill(codes, code);
        Arrays.fill(rates, rate);
        int[] at = Double.isNaN(wouldRate) ? new int[0] : IntStream.range(0, Tags.TYPES).toArray();
        int[] wouldCodes = new int[at.length];
        double[] wouldRates = new double[at.length];
        int[] wouldSuppliers = new int[at.length];
        Arrays.fill(wouldCodes, wouldCode);
        Arrays.fill(wouldRates, wouldRate);
        Arrays.fill(wouldSuppliers, 1);
        var batch = new Batch(List.of(new Batch.Lookup(principal, clientId, System.nanoTime())), List.of());
        table.publish(batch, new int[1], codes, rates, new String[] {"gold"}, new int[Tags.TYPES], new String[] {"old", "tried"},
                new int[] {distinct == null ? Answers.EACH : 0}, new ClientIds[] {distinct}, at, wouldCodes, wouldRates, wouldSuppliers);
    }

    private void publish(String principal, String clientId, int code, double rate, int wouldCode, double wouldRate) {
        publish(principal, clientId, code, rate, wouldCode, wouldRate, null);
    }

    private void look() {
        table.shadows().look(nanos += 1_000_000_000L);
    }

    private HeldBack counts(String rule) {
        return table.shadows().heldBacks().of(rule);
    }

    /** The fields of describe() that are about shadow: supplier, user, client-id, base, limit, rate, the factor's limit. */
    private List<String> shadow(String principal, String clientId) {
        List<String> fields = List.of(table.describe(principal, clientId)[PRODUCE].split("\t", -1));
        return fields.subList(fields.size() - 7, fields.size());
    }

    /** What binds each scope, the busiest first, and which rule in shadow would. */
    private List<String> bound() {
        return Arrays.stream(table.uses(10)).map(line -> line.split("\t", -1)).map(use -> use[8] + " " + use[10]).toList();
    }

    private void assertCounted(String rule, int over, double seconds, double bytes) {
        assertEquals(over, counts(rule).now(), "over");
        assertEquals(seconds, counts(rule).seconds(), 1e-6, "seconds");
        assertEquals(bytes, counts(rule).bytes(), 1e-6, "bytes");
    }

    @Test
    void theOldSupplierIsInForceAndTheNewOneIsMeasuredInItsOwnScope() throws JMException {
        table.shadow(new String[] {TRIED});
        publish("alice", "a", Scopes.CLIENT, 5_000, Scopes.USER, 1_000);
        publish("alice", "b", Scopes.CLIENT, 5_000, Scopes.USER, 1_000);
        kafka.show("Produce", ",user=alice,client-id=a", 700, 0);
        kafka.show("Produce", ",user=alice,client-id=b", 800, 0);
        look();
        look();

        assertEquals(5_000.0, Tables.limit(table, PRODUCE, "alice", "a"));
        assertCounted(TRIED, 1, 1, 500);
        assertEquals(List.of("tried", "alice", "", "1000.0", "1000.0", "1500.0", ""), shadow("alice", "a"));
        assertEquals(List.of("nothing " + TRIED, "nothing " + TRIED), bound());
    }

    @Test
    void whoIsBelowTheLimitIsNotCounted() throws JMException {
        table.shadow(new String[] {TRIED});
        publish("alice", "a", Scopes.CLIENT, Double.NaN, Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=a", 900, 0);
        kafka.show("Fetch", ",user=alice,client-id=a", 1_200, 0);
        look();
        look();

        assertNull(Tables.limit(table, FETCH, "alice", "a"));
        assertCounted(TRIED, 1, 1, 200);
        assertEquals("900.0", shadow("alice", "a").get(5));
    }

    @Test
    void aScopeThatKafkaMeasuresTogetherWithOthersCannotBeTold() throws JMException {
        table.shadow(new String[] {TRIED});
        publish("alice", "a", Scopes.USER, 5_000, Scopes.CLIENT, 1, new ClientIds(new String[0]));
        publish("bob", "a", Scopes.ALL, 5_000, Scopes.USER, 1, new ClientIds(new String[0]));
        publish("carol", "a", Scopes.ALL, 5_000, 0, Double.NaN, new ClientIds(new String[0]));
        kafka.show("Produce", ",user=alice", 700, 0);
        kafka.show("Produce", ",user=<broker>", 700, 0);
        look();
        look();

        assertCounted(TRIED, 0, 0, 0);
        assertEquals(2 * 3, counts(TRIED).unmeasured(), "two scopes of three types");
        assertEquals("NaN", shadow("bob", "a").get(5));
    }

    @Test
    void allClientsOfABrokerWouldShareWhatTheyHaveApart() throws JMException {
        table.shadow(new String[] {TRIED});
        for (String user : List.of("alice", "bob")) {
            publish(user, "a", Scopes.USER, 5_000, Scopes.GROUP, 1_000, new ClientIds(new String[0]));
            kafka.show("Produce", ",user=" + user, 600, 0);
        }
        look();
        look();

        assertCounted(TRIED, 1, 1, 200);
    }

    @Test
    void theFactorInForceLowersWhatTheSupplierWouldGive() throws JMException {
        table.shadow(new String[] {TRIED});
        publish("alice", "a", Scopes.CLIENT, Double.NaN, Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=a", 900, 0);
        table.factor(0.5, "");
        look();
        look();

        assertCounted(TRIED, 1, 1, 400);
        assertEquals("500.0", shadow("alice", "a").get(4));
    }

    @Test
    void theFactorInShadowCountsWhatTheQuotaLetsThroughBeyondIt() throws JMException {
        table.shadow(new String[] {"factor"});
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        Tables.publish(table, "bob", "b", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=a", 1_100, 0);
        kafka.show("Produce", ",user=bob,client-id=b", 400, 0);
        look();
        table.factor(0.5, "");
        look();

        assertCounted("factor", 1, 1, 500);
        assertEquals("500.0", shadow("alice", "a").get(6));
        assertEquals(List.of("quota factor", "nothing "), bound());
        table.factor(1, "");
        look();
        assertEquals(0, counts("factor").now());
        assertEquals("", shadow("alice", "a").get(6));
    }

    @Test
    void inAPauseThatTheFenceWouldHoldEverythingIsBeyondButForThoseWhoPass() throws JMException {
        FenceFixture.fence("none", Map.of("super.users", "User:admin"));
        table.shadow(new String[] {"factor"});
        for (String user : List.of("alice", "admin")) {
            Tables.publish(table, user, "a", Scopes.CLIENT, 1_000);
            kafka.show("Produce", ",user=" + user + ",client-id=a", 700, 0);
        }
        look();
        table.factor(0, "");
        look();

        assertCounted("factor", 1, 1, 700);
    }

    @Test
    void aFactorForSomeTopicsConcernsThoseWhoWriteThereOnly() throws JMException {
        var fence = FenceFixture.fence("none", Map.of());
        table.shadow(new String[] {"factor"});
        for (String user : List.of("alice", "bob")) {
            Tables.publish(table, user, "a", Scopes.CLIENT, 1_000);
            kafka.show("Produce", ",user=" + user + ",client-id=a", 700, 0);
        }
        look();
        table.factor(0.5, "full", new String[] {"orders"}, new String[] {"broker 3"}, new boolean[1]);
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "a"), FenceFixture.write("orders"));
        look();

        assertCounted("factor", 1, 1, 200);
        assertEquals(List.of("500.0", ""), List.of(shadow("alice", "a").get(6), shadow("bob", "a").get(6)));
    }

    @Test
    void withModeShadowTheQuotasOfAllSuppliersAreCountedAndTheFactorsPartBesideThem() throws JMException {
        table.shadow(new String[] {"factor", "topics"});
        table.configure(100, 3_600, 10, new String[] {"PRODUCE"}, true, Tables.NEWCOMERS, Tables.ALL);
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=a", 1_600, 0);
        look();
        table.factor(0.5, "");
        look();

        assertCounted("supplier.static", 1, 1, 600);
        assertCounted("factor", 1, 1, 500);
    }

    @Test
    void withNothingInShadowNothingIsCounted() throws JMException {
        Tables.publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=a", 1_600, 0);
        table.factor(0.5, "");
        look();
        look();

        assertEquals(Map.of(), table.shadows().heldBacks().all());
    }
}
