package org.quotahost.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import javax.management.Attribute;
import javax.management.AttributeNotFoundException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.RuntimeMBeanException;
import javax.management.openmbean.TabularData;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.util.LogCapture;

/** Tests the numbers and tables that JMX and other readers see. */
class GaugesTest {
    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Gauges gauges = new Gauges();
    private double value = 1;

    @AfterEach
    void close() {
        gauges.close();
    }

    private static ObjectName name(String rest) throws Exception {
        return new ObjectName("quotahost:type=" + rest);
    }

    @Test
    void aGaugeIsReadWhenItIsAskedFor() throws Exception {
        gauges.add("Test", "", "Depth", () -> value);
        assertEquals(1.0, server.getAttribute(name("Test"), "Depth"));

        value = 2;

        assertEquals(2.0, server.getAttribute(name("Test"), "Depth"));
        assertEquals(List.of(new Attribute("Depth", 2.0)),
                server.getAttributes(name("Test"), new String[] {"Depth", "None"}).asList());
        assertThrows(AttributeNotFoundException.class, () -> server.getAttribute(name("Test"), "None"));
        assertThrows(RuntimeMBeanException.class, () -> server.setAttribute(name("Test"), new Attribute("Depth", 3.0)));
    }

    @Test
    void aNumberThatIsThereStaysAsItIs() throws Exception {
        gauges.add("Test", "", "Depth", () -> value);
        gauges.add("Test", "", "Depth", () -> 7);
        gauges.set("Test", "", "Depth", 8);

        assertEquals(1.0, server.getAttribute(name("Test"), "Depth"));
        assertEquals(1, gauges.all().size());
    }

    @Test
    void anyNameMakesAnMBean() throws Exception {
        for (String plugin : List.of("static", "a,b=c:*?\"x\n", "客户")) gauges.add("Test", plugin, "Errors", () -> value);

        assertEquals(3, server.queryNames(name("Test,name=*"), null).size());
        assertEquals(List.of("static", "a,b=c:*?\"x\n", "客户"), gauges.all().stream().map(Gauges.Gauge::name).toList());
    }

    @Test
    void anMBeanGainsAttributesWhileItIsThereAndSaysSo() throws Exception {
        gauges.add("Test", "", "Depth", () -> value);
        gauges.table("Test", "Uses", () -> ClientTable.of(List.of()));
        gauges.set("Test", "", "Age", 3);

        MBeanAttributeInfo[] infos = server.getMBeanInfo(name("Test")).getAttributes();

        assertEquals(Set.of("Age", "Depth", "Uses"),
                Arrays.stream(infos).map(MBeanAttributeInfo::getName).collect(Collectors.toSet()));
        assertEquals(0, server.getMBeanInfo(name("Test")).getOperations().length);
        assertTrue(((TabularData) server.getAttribute(name("Test"), "Uses")).isEmpty());
        assertEquals(List.of("Depth", "Age"), gauges.all().stream().map(Gauges.Gauge::attribute).toList(), "JMX alone has tables");
    }

    @Test
    void whatPythonForgetsIsGoneAndWhatIsJavasAloneStays() throws Exception {
        gauges.set("Volume", "a", "Bytes", 5);
        gauges.set("Volume", "b", "Bytes", 5);
        gauges.add("Fence", "", "Mutes", () -> value);

        gauges.forget("Volume", "a");
        gauges.forget("Fence", "");
        gauges.forget("Volume", "never set");

        assertFalse(server.isRegistered(name("Volume,name=a")));
        assertEquals(List.of("b", ""), gauges.all().stream().map(Gauges.Gauge::name).toList());
        assertEquals(1.0, server.getAttribute(name("Fence"), "Mutes"));
        gauges.set("Volume", "a", "Bytes", 7);
        assertEquals(7.0, server.getAttribute(name("Volume,name=a"), "Bytes"));
    }

    @Test
    void closingTakesEveryMBeanAwayAndASecondLifeMayHaveTheSameNames() throws Exception {
        gauges.add("Test", "", "Depth", () -> value);
        gauges.close();
        gauges.set("Test", "", "Depth", 1); // a call from a Python thread that still runs
        assertFalse(server.isRegistered(name("Test")));

        Gauges last = new Gauges();
        Gauges next = new Gauges();
        last.add("Test", "", "Depth", () -> 1);
        next.add("Test", "", "Depth", () -> 2);
        assertEquals(2.0, server.getAttribute(name("Test"), "Depth"));
        next.close();
    }

    /** For example, a plugin counts by client-id, and clients choose a new client-id at each start. */
    @Test
    void ofPythonsNumbersWithoutEndTheFirstStayAndTheLogSaysOnceWhichWereNext() {
        Gauges few = new Gauges(10);
        few.add("Java", "", "Depth", () -> value);
        String log = LogCapture.during(() -> {
            for (int i = 0; i < 20; i++) few.count("Asked", "client-" + i, "Times", 1);
            few.set("Asked", "client-9", "Times", 7);
            few.forget("Asked", "client-0");
            few.set("Asked", "last", "Times", 7);
            few.log();
            few.log();
        });

        assertEquals(List.of("client-9", "last"), few.names("Asked", "Times", 7));
        assertEquals(11, few.all().size());
        assertEquals(1, LogCapture.lines(log, "is Times of quotahost:type=Asked"), log);
        few.close();
    }

    // ---- JMX's table of clients, made of the rows of the Python host ----

    private static TabularData table(List<?>... rows) {
        return ClientTable.of(List.of(rows));
    }

    @Test
    void aListOfColumnsIsARowWhateverTheNamesAre() {
        List<Object> alice = List.of("CN=a b+ä", "\n\t", "client", "PRODUCE", 1.5, Double.NaN, 3.0, Double.NaN, 0.0, "shadow: factor");
        List<Object> all = List.of("", "", "broker", "FETCH", 1.0, 2.0, 2.0, 0.5, 7.0, "topic quota");
        for (var row : List.of(alice, all)) {
            assertEquals(row, List.of(table(alice, all).get(row.subList(0, 4).toArray()).getAll(
                    new String[] {"user", "client_id", "scope", "type", "Rate", "Quota", "Limit", "Share", "DelayMs", "Bound"})));
        }
    }

    @Test
    void itIsEmptyWhileTheHostDoesNotAnswer() {
        assertEquals(0, ClientTable.of("{\"error\": \"the Python host did not answer\"}").size());
    }
}
