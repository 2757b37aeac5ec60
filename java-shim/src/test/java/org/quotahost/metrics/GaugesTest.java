package org.quotahost.metrics;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.management.ManagementFactory;
import java.util.List;
import javax.management.Attribute;
import javax.management.AttributeNotFoundException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.ReflectionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The numbers and operations as JMX shows them. */
class GaugesTest {
    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Gauges gauges = new Gauges();
    private double value = 1;

    @AfterEach
    void close() {
        gauges.close();
    }

    @Test
    void beansAreFoundByWhatTheyShow() {
        gauges.add("Source", "first", "Answers", () -> value);
        gauges.add("Source", "second", "Answers", () -> 1 - value);
        gauges.add("Source", "second", "Switches", () -> 1);
        gauges.add("Other", "third", "Answers", () -> 1);
        assertEquals(List.of("first"), gauges.names("Source", "Answers", 1));

        value = 0;

        assertEquals(List.of("second"), gauges.names("Source", "Answers", 1));
        assertEquals(List.of(), gauges.names("Source", "Answers", 2));
    }

    @Test
    void aGaugeIsReadWhenItIsAskedFor() throws Exception {
        gauges.add("Test", "", "Depth", () -> value);
        ObjectName name = new ObjectName("quotahost:type=Test");
        assertEquals(1.0, server.getAttribute(name, "Depth"));

        value = 2;

        assertEquals(2.0, server.getAttribute(name, "Depth"));
        assertEquals(List.of(new Attribute("Depth", 2.0)), server.getAttributes(name, new String[] {"Depth", "None"}).asList());
        assertThrows(AttributeNotFoundException.class, () -> server.getAttribute(name, "None"));
        assertThrows(AttributeNotFoundException.class, () -> server.setAttribute(name, new Attribute("Depth", 3.0)));
    }

    @Test
    void anyNameMakesAnMBean() throws Exception {
        for (String plugin : List.of("static", "a,b=c:*?\"x\n", "客户")) gauges.add("Test", plugin, "Errors", () -> value);

        assertEquals(3, server.queryNames(new ObjectName("quotahost:type=Test,name=*"), null).size());
        assertEquals(List.of("static", "a,b=c:*?\"x\n", "客户"), gauges.all().stream().map(Gauges.Gauge::name).toList());
    }

    @Test
    void anOperationAnswersLines() throws Exception {
        gauges.operation("Test", "describe", args -> new String[] {args[0] + "/" + args[1]});
        ObjectName name = new ObjectName("quotahost:type=Test");

        Object lines = server.invoke(name, "describe", new Object[] {"alice", "app"}, new String[] {"java.lang.String", "java.lang.String"});

        assertArrayEquals(new String[] {"alice/app"}, (String[]) lines);
        assertThrows(ReflectionException.class, () -> server.invoke(name, "none", new Object[0], new String[0]));
    }

    @Test
    void closingTakesEveryMBeanAwayAndASecondLifeMayHaveTheSameNames() throws Exception {
        ObjectName name = new ObjectName("quotahost:type=Test");
        gauges.add("Test", "", "Depth", () -> value);
        gauges.close();
        assertFalse(server.isRegistered(name));

        Gauges next = new Gauges();
        gauges.add("Test", "", "Depth", () -> 1);
        next.add("Test", "", "Depth", () -> 2);
        assertEquals(2.0, server.getAttribute(name, "Depth"));
        next.close();
    }
}
