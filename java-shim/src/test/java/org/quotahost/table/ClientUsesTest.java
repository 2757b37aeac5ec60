package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.quotahost.table.Tables.publish;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.management.JMException;
import javax.management.openmbean.CompositeData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.QuotaFence;
import org.quotahost.fence.FenceFixture;

/** Who uses what: a row for each scope that Kafka measures, by what each is held back, and who comes first. */
class ClientUsesTest {
    private final QuotaTable table = Tables.table();
    private final KafkaBeans kafka = new KafkaBeans();

    @AfterEach
    void reset() {
        kafka.close();
        FenceFixture.reset();
    }

    private List<String> uses(int most) {
        return Arrays.asList(table.uses(most));
    }

    private List<String> users() {
        return uses(100).stream().map(line -> line.split("\t")[1]).toList();
    }

    private static void turnBack(QuotaFence fence, String principal, String clientId) {
        assertThrows(FenceFixture.PAUSED, () -> fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, principal, clientId),
                FenceFixture.write("orders")));
    }

    private String bound(String principal, String clientId) {
        String explained = table.describe(principal, clientId)[Tables.PRODUCE].split("\t", -1)[17];
        String[] use = uses(1).get(0).split("\t", -1);
        assertEquals(explained, use[8], "explain says the same");
        return explained;
    }

    @Test
    void eachScopeThatKafkaMeasuresHasOneRowThatTellsWhoSharesIt() throws JMException {
        publish(table, "a:b", "c\td\u00fc", Scopes.CLIENT, 1_000);
        publish(table, "bob", "app", Scopes.USER, 1_000);
        publish(table, "carol", "shared", Scopes.CLIENT_ID, 1_000);
        publish(table, "dave", "app", Scopes.GROUP, 1_000, "gold & silver");
        publish(table, "erin", "app", Scopes.EXEMPT, Double.NaN);
        kafka.show("Produce", ",user=a%3Ab,client-id=\"c\td\u00fc\"", 70, 0);
        kafka.show("Produce", ",user=bob", 60, 0);
        kafka.show("Produce", ",client-id=shared", 50, 0);
        kafka.show("Produce", ",user=\"<group gold%20%26%20silver>\"", 40, 0);
        kafka.show("Produce", ",user=\"<newcomers>\"", 30, 0);
        kafka.show("Produce", ",user=\"<exempt>\"", 20, 0);
        kafka.show("Produce", ",user=\"<newcomers a%3Ab>\"", 10, 0);

        List<String> who = uses(100).stream().map(line -> String.join("|", Arrays.asList(line.split("\t")).subList(1, 5))).toList();
        assertEquals(List.of("a:b|c\\td\\u00fc|client|70.0", "bob||user|60.0", "|shared|client-id|50.0", "||group gold & silver|40.0",
                "||newcomers|30.0", "||exempt|20.0", "a:b||newcomers of the user|10.0"), who);
    }

    @Test
    void aLineTellsRateQuotaLimitDelayAndWhatBinds() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 480, 250);
        table.factor(0.5, "full");
        assertEquals(List.of("PRODUCE\talice\tapp\tclient\t480.0\t1000.0\t500.0\t250.0\tfactor\t0\t"), uses(1));
    }

    @Test
    void whoIsDelayedComesBeforeTheBusiestAndNoMoreAreToldThanAskedFor() throws JMException {
        for (int n = 1; n <= 3; n++) publish(table, "alice", "app-" + n, Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app-1", 10, 250);
        kafka.show("Produce", ",user=alice,client-id=app-2", 200, 0);
        kafka.show("Produce", ",user=alice,client-id=app-3", 300, 0);
        assertEquals(List.of("app-1", "app-3"), uses(2).stream().map(line -> line.split("\t")[2]).toList());
    }

    @Test
    void theBusiestOfEachTypeComeInTurnWhateverTheirUnits() throws JMException {
        for (int n = 1; n <= 2; n++) publish(table, "alice", "app-" + n, Scopes.CLIENT, 1e9);
        kafka.show("Produce", ",user=alice,client-id=app-1", 5_000, 0);
        kafka.show("Produce", ",user=alice,client-id=app-2", 4_000, 0);
        kafka.show("Fetch", ",user=alice,client-id=app-2", 2, 0);
        assertEquals(List.of("PRODUCE 5000.0", "FETCH 2.0", "PRODUCE 4000.0"),
                uses(9).stream().map(line -> line.split("\t")[0] + " " + line.split("\t")[4]).toList());
    }

    @Test
    void whatBindsIsTheQuotaTheFactorTheFloorOrNothing() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 905, 0);
        assertEquals("quota", bound("alice", "app"));
        table.factor(0.95, "full");
        assertEquals("factor", bound("alice", "app"));
        table.factor(0.001, "full");
        assertEquals("floor", bound("alice", "app"));
        publish(table, "alice", "app", Scopes.CLIENT, 10_000);
        table.factor(1, "");
        assertEquals("nothing", bound("alice", "app"));
        publish(table, "alice", "app", Scopes.CLIENT, Double.NaN);
        assertEquals("nothing", bound("alice", "app"));
    }

    @Test
    void whomTheFenceTurnsBackIsThereThoughKafkaMeasuresNothing() {
        var fence = FenceFixture.fence("none", Map.of("super.users", "User:admin"));
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        publish(table, "bob", "app", Scopes.USER, 1_000);
        table.factor(0, "full");
        assertEquals(List.of(), uses(10), "it has turned nobody back yet");

        turnBack(fence, "alice", "app");
        assertEquals("fence", bound("alice", "app"));
        turnBack(fence, "bob", "app");
        turnBack(fence, "carol", "unknown");
        assertEquals(Set.of("alice|app|client|fence", "||newcomers|fence", "bob||user|fence"), uses(10).stream()
                .map(line -> line.split("\t")).map(use -> use[1] + "|" + use[2] + "|" + use[3] + "|" + use[8])
                .collect(Collectors.toSet()));
        table.factor(1, "");
        assertEquals(List.of(), uses(10), "an open fence holds nobody back");
    }

    @Test
    void aSlowedClientIsOneRowWithTheTwinsLimit() throws JMException {
        var fence = FenceFixture.fence("none", Map.of("super.users", "User:admin"));
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        table.factor(0.5, "full", new String[] {"orders"}, new String[] {"broker 3"}, new boolean[1]);
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write("orders"));
        Tables.tags(table, "alice", "app");
        kafka.show("Produce", ",user=alice,client-id=app", 100, 20);
        kafka.show("Produce", ",user=\"<slowed alice>\",client-id=app", 30, 250);
        assertEquals(List.of("PRODUCE\talice\tapp\tclient\t130.0\t1000.0\t500.0\t250.0\tfactor\t0\t"), uses(5));
        assertEquals("factor", bound("alice", "app"));
    }

    @Test
    void aClientThatIsSilentForLongerThanKafkaLooksBackIsDropped() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        publish(table, "bob", "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 70, 0);
        kafka.show("Produce", ",user=bob,client-id=app", 60, 0);
        table.beat(Usage.RECENT_MS);
        assertEquals(List.of("alice", "bob"), users());
        Tables.tags(table, "bob", "app");
        table.beat(Usage.RECENT_MS + QuotaTable.BEAT_MS);
        assertEquals(List.of("bob"), users(), "though Kafka keeps alice's sensor for an hour");
        Tables.tags(table, "alice", "app");
        assertEquals(List.of("alice", "bob"), users(), "her next request brings her back");
    }

    @Test
    void aClientWhoseSensorKafkaHasDroppedIsDropped() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 70, 0);
        assertEquals(List.of("alice"), users());
        kafka.close();
        assertEquals(List.of(), uses(100));
    }

    @Test
    void nobodyIsToldWhereNobodyIsAskedFor() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=alice,client-id=app", 70, 0);
        assertEquals(List.of(), uses(0));
    }

    @Test
    void jmxHasNoRowForAClientThatUsesNothingAndIsNotHeldBack() throws JMException {
        for (String user : List.of("busy", "idle", "delayed")) publish(table, user, "app", Scopes.CLIENT, 1_000);
        kafka.show("Produce", ",user=busy,client-id=app", 70, 0);
        kafka.show("Produce", ",user=idle,client-id=app", 0, 0);
        kafka.show("Produce", ",user=delayed,client-id=app", 0, 250);
        table.showUses(200);
        assertEquals(Set.of("busy", "delayed"), table.usesTable().values().stream()
                .map(row -> (String) ((CompositeData) row).get("user")).collect(Collectors.toSet()));
    }
}
