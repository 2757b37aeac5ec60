package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.publish;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Batch;
import org.quotahost.metrics.NumberBean;

/** The lines by which an operator sees one client's quotas. */
class DescriptionTest {
    private static final String[] SUPPLIERS = {"client-quotas", "static", "excluded"};
    private static final double UNLIMITED = Double.NaN;

    private final QuotaTable table = Tables.table();

    private void answer(int[] codes, double[] rates, int[] sources) {
        table.publish(new Batch(List.of(new Batch.Lookup("alice", "app", 0)), List.of()), new int[1], codes, rates, new String[0], sources, SUPPLIERS,
                new int[] {Answers.EACH}, new ClientIds[0]);
    }

    private List<String> fields(int type) {
        return List.of(table.describe("alice", "app")[type].split("\t", -1));
    }

    @Test
    void theFirstFieldsAreTagsBaseRateAndLimitOfEachType() {
        publish(table, "a:b", "a\tb\\c", Scopes.CLIENT, 1_000);
        table.factor(0.5, "");

        assertEquals("PRODUCE\ta%3Ab\ta\\tb\\\\c\t1000.0\t500.0\tknown\tstatic\tfalse\tNaN\tfalse\t\tfalse\tNaN\tNaN\tNaN\t\t\tnothing\t\t\t\tNaN\tnull\tNaN\t",
                table.describe("a:b", "a\tb\\c")[PRODUCE]);
        assertEquals("FETCH\t<newcomers>\t\t100.0\t100.0\tnewcomer\t\tfalse\tNaN\tfalse\t\tfalse\tNaN\tNaN\tNaN\t\t\tnothing\t\t\t\tNaN\tnull\tNaN\t",
                table.describe("nobody", "")[FETCH]);
    }

    @Test
    void eachTypeNamesItsSupplierOrTheReasonOfTheExemption() {
        answer(new int[] {Scopes.USER, Scopes.CLIENT, Scopes.CLIENT, Scopes.EXEMPT},
                new double[] {1_000, 200, UNLIMITED, UNLIMITED}, new int[] {0, 1, -1, 2});

        List<String> suppliers = Arrays.stream(table.describe("alice", "app")).map(line -> line.split("\t", -1))
                .map(line -> line[6] + " " + line[7]).toList();
        assertEquals(List.of("client-quotas false", "static false", " false", "excluded true"), suppliers);
    }

    @Test
    void aFailedSupplierIsNamedForANewcomerAndTheFormerSupplierForAClientThatKeepsItsQuota() {
        answer(new int[] {Scopes.CLIENT, Scopes.NEWCOMER, 0, 0}, new double[] {1_000, UNLIMITED, 5, 5}, new int[] {0, 1, 0, 0});
        assertEquals(List.of("newcomer", "static", "true"), List.of(fields(FETCH).get(5), fields(FETCH).get(6), fields(FETCH).get(11)));

        answer(new int[] {Scopes.NEWCOMER, Scopes.CLIENT, 0, 0}, new double[] {UNLIMITED, 50, 5, 5}, new int[] {1, 1, 0, 0});
        assertEquals(List.of("known", "client-quotas"), List.of(fields(PRODUCE).get(5), fields(PRODUCE).get(6)));
        assertEquals(List.of("known", "static"), List.of(fields(FETCH).get(5), fields(FETCH).get(6)));
    }

    @Test
    void whileTheFactorIsBelowOneTheLineNamesTheStandInOfAMissingQuota() {
        publish(table, "alice", "app", Scopes.CLIENT, UNLIMITED);
        assertEquals("NaN", fields(PRODUCE).get(8), "not while the factor is 1");
        table.factor(0.9, "");
        assertEquals(List.of("100.0", "newcomers"), List.of(fields(PRODUCE).get(8), fields(PRODUCE).get(10)));
        assertEquals("NaN", fields(FETCH).get(8), "the factor doesn't act on it");
    }

    @Test
    void aRateMeasuredForAUserAsAWholeStandsInToo() throws Exception {
        ObjectName name = new ObjectName("kafka.server:type=Produce,user=alice"); // Kafka leaves empty tags out
        var bean = NumberBean.of(Map.of("byte-rate", () -> 4_000, "throttle-time", () -> 250));
        ManagementFactory.getPlatformMBeanServer().registerMBean(bean, name);
        try {
            publish(table, "alice", "app", Scopes.USER, UNLIMITED);
            table.factor(0.9, "");
            assertEquals(List.of("4000.0", "measured"), List.of(fields(PRODUCE).get(8), fields(PRODUCE).get(10)));
            assertEquals(List.of("4000.0", "250.0"), fields(PRODUCE).subList(12, 14));
        } finally {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
        }
    }

    @Test
    void theTokensOfABucketAreShownForMutationsAlone() throws Exception {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        var server = ManagementFactory.getPlatformMBeanServer();
        var names = List.of(new ObjectName("kafka.server:type=ControllerMutation,user=alice,client-id=app"),
                new ObjectName("kafka.server:type=Fetch,user=alice,client-id=app"));
        for (var name : names) server.registerMBean(NumberBean.of(Map.of("tokens", () -> -45.5, "mutation-rate", () -> 5.6)), name);
        try {
            assertEquals(List.of("5.6", "NaN", "-45.5"), fields(Tables.ALL.length - 1).subList(12, 15));
            assertEquals(List.of("NaN", "NaN", "NaN"), fields(FETCH).subList(12, 15));
        } finally {
            for (var name : names) server.unregisterMBean(name);
        }
    }

    @Test
    void aLimitAtTheFloorIsMarkedAndAQuotaBelowItIsNot() {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        publish(table, "alice", "small", Scopes.CLIENT, 5);
        table.configureTap(1, 0, 1); // a fall to nothing in one step
        table.factor(0, "");
        assertEquals(List.of("10.0", "true"), List.of(fields(PRODUCE).get(4), fields(PRODUCE).get(9)));
        assertEquals("false", fields(FETCH).get(9), "no factor acts on it");
        assertEquals("5.0\tknown\tstatic\tfalse\tNaN\tfalse", String.join("\t",
                List.of(table.describe("alice", "small")[PRODUCE].split("\t")).subList(4, 10)), "it was set so");
    }
}
