package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.publish;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.quotahost.QuotaFence;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.FenceFixture;
import org.quotahost.util.Beans;
import org.quotahost.util.Json;
import org.quotahost.util.Names;

/** Tests the raw data of the table: a row for each scope that Kafka measures, and what one client has. */
class DumpTest {
    private final QuotaTable table = Tables.table();
    private final Dump dump = new Dump(table);
    private final Beans kafka = new Beans();

    @AfterEach
    void reset() {
        kafka.close();
        FenceFixture.reset();
    }

    private void client(String principal, String clientId, int code, double rate, String... groups) {
        publish(table, principal, clientId, code, rate, groups);
        Tables.tags(table, principal, clientId);
    }

    private static List<Object> column(List<Map<String, Object>> rows, String name) {
        return rows.stream().map(row -> row.get(name)).toList();
    }

    @Test
    void eachScopeThatKafkaMeasuresHasOneRow() throws JMException {
        client("a:b", "c\td\u00fc", Scopes.CLIENT, 1_000);
        client("bob", "app", Scopes.USER, 1_000);
        client("carol", "shared", Scopes.CLIENT_ID, 1_000);
        client("dave", "app", Scopes.GROUP, 1_000, "gold & silver");
        Exemptions.set(Map.of("erin", "excluded"), new String[0], "");
        Tables.tags(table, "erin", "app");
        Tables.tags(table, "stranger", "x");
        kafka.show("Produce", ",user=a%3Ab,client-id=\"c\td\u00fc\"", 70, 0);
        kafka.show("Produce", ",user=bob", 60, 0);
        kafka.show("Produce", ",client-id=shared", 50, 0);
        kafka.show("Produce", ",user=\"<group gold%20%26%20silver>\"", 40, 0);
        kafka.show("Produce", ",user=\"<newcomers>\"", 30, 0);
        kafka.show("Produce", ",user=\"<exempt>\"", 20, 0);

        var rows = dump.uses(100);
        assertEquals(List.of("a%3Ab", "bob", "", "<group gold%20%26%20silver>", "<newcomers>", "<exempt>"), column(rows, "user"));
        assertEquals(List.of("c\td\u00fc", "", "shared", "", "", ""), column(rows, "client_id"));
        assertEquals(List.of(70.0, 60.0, 50.0, 40.0, 30.0, 20.0), column(rows, "rate"));
        assertEquals(List.of("a%3Ab"), column(dump.usage(10), "user"), "usage is of those who have a quota of their own");
    }

    @Test
    void whoIsDelayedComesBeforeTheBusiestAndNoMoreAreToldThanAskedFor() throws JMException {
        for (int n = 1; n <= 3; n++) {
            client("alice", "app-" + n, Scopes.CLIENT, 1_000);
            kafka.show("Produce", ",user=alice,client-id=app-" + n, n * 100, n == 1 ? 20 : 0);
        }
        assertEquals(List.of("app-1", "app-3"), column(dump.uses(2), "client_id"));
        assertEquals(List.of("app-3", "app-2"), column(dump.usage(2), "client_id"));
    }

    @Test
    void typesComeInTurnSinceTheirUnitsCannotBeCompared() throws JMException {
        for (String name : List.of("a", "b")) {
            client(name, "app", Scopes.CLIENT, 1_000);
            kafka.show("Produce", ",user=" + name + ",client-id=app", 1_000_000, 0);
            kafka.show("Fetch", ",user=" + name + ",client-id=app", 10, 0);
        }
        assertEquals(List.of("FETCH", "PRODUCE"), column(dump.uses(2), "type").stream().sorted().toList());
    }

    @Test
    void aRowTellsOwnAndSlowedLimitRateAndDelayAndForHowLongNobodyCame() throws JMException {
        QuotaFence fence = FenceFixture.fence("none", Map.of());
        Tables.configure(table, 10, "PRODUCE", "CONTROLLER_MUTATION");
        client("alice", "app", Scopes.CLIENT, 1_000);
        Tables.affect(table, 0.5, "orders");
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write("orders"));
        Tables.tags(table, "alice", "app");
        kafka.show("Produce", ",user=alice,client-id=app", 100, 20);
        kafka.show("Produce", ",user=\"<slowed alice>\",client-id=app", 30, 250);
        String bucket = "kafka.server:type=ControllerMutation,client-id=app,user=";
        kafka.show(bucket + "alice", Map.of("mutation-rate", 1.0, "tokens", 110.0));
        kafka.show(bucket + "\"<slowed alice>\"", Map.of("mutation-rate", 1.0, "tokens", -5.0));
        table.beat(2_450);

        var row = dump.usage(1).get(0);
        assertEquals(List.of(1_000.0, 1_000.0, 500.0, 100.0, 20.0, 30.0, 250.0, 2_400L), Arrays.asList(row.get("base"),
                row.get("limit"), row.get("slowed_limit"), row.get("rate"), row.get("delay_ms"), row.get("slowed_rate"),
                row.get("slowed_delay_ms"), row.get("idle_ms")));
        assertEquals(Map.of("topic", "orders", "place", "broker 3, volume /dev/sdb", "held", false, "budget", "", "factor", 0.5), row.get("mark"));
        assertEquals(1, dump.marks(10).size());
        String tokens = dump.client("alice", "app").toString();
        assertTrue(tokens.contains("tokens=-5.0"), "Kafka charges the bucket of the slowed tags: " + tokens);

        Tables.configure(table, 10, "PRODUCE");
        tokens = dump.client("alice", "app").toString();
        assertTrue(tokens.contains("tokens=110.0"), "a mark changes nothing for a type that no factor multiplies: " + tokens);
    }

    @ParameterizedTest
    @CsvSource({"web, FETCH", "other, SHARE_FETCH"}) // a client with something of its own, and an unknown client
    void aRowTellsFromWhereItsUserWroteOrReadLastAsTheAuthorizerSeesIt(String clientId, ApiKeys reads) throws JMException {
        QuotaFence fence = FenceFixture.fence("none", Map.of());
        client("alice", "app", Scopes.CLIENT, 1_000);
        client("bob", "web", Scopes.USER, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 100, 0);
        kafka.show("Produce", ",user=bob", 50, 0);
        table.beat(0);
        assertEquals(List.of("", ""), column(dump.uses(2), "address"));

        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write("orders"));
        fence.authorize(FenceFixture.from(ApiKeys.METADATA, "bob", "web"), FenceFixture.write("orders"));
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "stranger", "x"), FenceFixture.write("orders"));
        assertEquals(List.of("127.0.0.1", ""), column(dump.uses(2), "address"), "only who writes or reads is noted");
        assertEquals("127.0.0.1", dump.client("alice", "app").get("address"));

        fence.authorize(FenceFixture.from(reads, "bob", clientId), FenceFixture.write("orders"));
        assertEquals(List.of("127.0.0.1", "127.0.0.1"), column(dump.uses(2), "address"), "of a user, whatever the client-id");
        assertEquals("", dump.client("stranger", "x").get("address"));
        client("alice", "app", Scopes.CLIENT, 2_000);
        assertEquals("127.0.0.1", dump.client("alice", "app").get("address"), "another quota is no other client");
    }

    @Test
    void whoWasTurnedBackIsThereThoughKafkaMeasuresNothingOfIt() {
        QuotaFence fence = FenceFixture.fence("none", Map.of());
        table.factor(0, "full", null);
        String longest = "u".repeat(Names.LONGEST_PRINCIPAL), tooLong = "x".repeat(Names.LONGEST_CLIENT_ID + 1);
        for (String[] who : new String[][] {{"alice", "app"}, {"alice", tooLong}, {longest, "app"}}) {
            client(who[0], Names.kept(who[1]), Scopes.CLIENT, 1_000);
            assertThrows(FenceFixture.PAUSED,
                    () -> fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, who[0], who[1]), FenceFixture.write("t")));
            assertEquals("fence", dump.client(who[0], who[1]).get("turned_back"));
        }
        assertEquals(List.of("fence", "fence", "fence"), column(dump.uses(10), "turned_back"));
        assertEquals(false, dump.client("alice", "app").get("passes"));
    }

    @Test
    void whoHasBeenSilentForMinutesIsLeftOut() throws JMException {
        client("alice", "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 7, 0);
        table.beat(120_000);
        assertEquals(1, dump.uses(10).size());
        table.beat(120_200);
        assertEquals(0, dump.uses(10).size());
    }

    @Test
    void oneClientHasSupplierAndStateOfEachType() {
        int[] codes = {Scopes.CLIENT, Scopes.NEWCOMER, Scopes.CLIENT, Scopes.CLIENT};
        var batch = new org.quotahost.inbox.Inbox.Batch(List.of(new org.quotahost.inbox.Inbox.Batch.Lookup("alice", "app", 0)), List.of());
        publish(table, batch, codes, new double[] {1_000, Double.NaN, 5, Double.NaN}, new String[0]);

        List<?> quotas = (List<?>) dump.client("alice", "app").get("quotas");
        assertEquals(List.of("static", true, true), facts(quotas, PRODUCE));
        assertEquals(List.of("static", false, true), facts(quotas, FETCH), "a newcomer: its supplier failed");
        assertEquals(List.of("", false, false), facts((List<?>) dump.client("nobody", "").get("quotas"), PRODUCE));
    }

    @Test
    void ofWhoIsExemptTheReasonIsKnownBeforeItsFirstRequest() {
        Exemptions.set(Map.of("backup", "excluded"), new String[0], "");
        assertEquals(List.of("excluded", true, false), facts((List<?>) dump.client("backup", "app").get("quotas"), PRODUCE));
    }

    private static List<Object> facts(List<?> quotas, int type) {
        Map<?, ?> row = (Map<?, ?>) quotas.get(type);
        return List.of(row.get("supplier"), row.get("known"), row.get("failed"));
    }

    @Test
    void anyTextIsJsonInAscii() {
        String text = Json.text(Map.of("a\"b\\", List.of("\u00fc\n\ud83d", 1.5, Double.NaN, true, new int[0], new String[] {"x"})));
        assertEquals("{\"a\\\"b\\\\\":[\"\\u00fc\\u000a\\ud83d\",1.5,null,true,[],[\"x\"]]}", text);
        assertTrue(Json.text(null).equals("null") && Json.text(Map.of()).equals("{}"));
    }
}
