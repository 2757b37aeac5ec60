package harness;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.management.Attribute;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.TabularData;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Reads another JVM's MBeans. It attaches by process id, so the other JVM needs no JMX port. A connection stays open for the
 * next question: tests ask repeatedly, and a new connection costs both JVMs far more time than the answer.
 */
final class Jmx {

    private static final Map<String, JMXConnector> CONNECTIONS = new HashMap<>();  // by process id

    @FunctionalInterface
    private interface Question {
        Object ask(MBeanServerConnection beans) throws Exception;
    }

    private Jmx() { }

    /** args: pid, object name, attribute. */
    static Object get(JsonNode args) throws Exception {
        ObjectName name = new ObjectName(args.get(1).textValue());
        return with(args, beans -> beans.getAttribute(name, args.get(2).textValue()));
    }

    /** args: pid, object name or pattern. Returns {object name: {attribute: value}}. */
    static Object query(JsonNode args) throws Exception {
        ObjectName pattern = new ObjectName(args.get(1).textValue());
        return with(args, beans -> {
            Map<String, Object> found = new TreeMap<>();
            for (ObjectName name : beans.queryNames(pattern, null)) {
                found.put(name.toString(), attributes(beans, name));
            }
            return found;
        });
    }

    private static Object with(JsonNode args, Question question) throws Exception {
        String pid = args.get(0).asText();
        JMXConnector kept = CONNECTIONS.get(pid);
        if (kept != null) {
            try {
                return plain(question.ask(kept.getMBeanServerConnection()));
            } catch (IOException ended) { // the process may have ended, and another one may have its id
                CONNECTIONS.remove(pid);
            }
        }
        JMXConnector fresh = connect(pid);
        CONNECTIONS.put(pid, fresh);
        return plain(question.ask(fresh.getMBeanServerConnection()));
    }

    private static JMXConnector connect(String pid) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(pid);
        try {
            // No thread checks the connection: it would print that a broker ended.
            Map<String, Object> unwatched = Map.of("jmx.remote.x.client.connection.check.period", 0L);
            return JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent()), unwatched);
        } finally {
            machine.detach();
        }
    }

    /** Returns the bean's attributes by name, without those that cannot be read, such as unsupported ones. */
    private static Map<String, Object> attributes(MBeanServerConnection beans, ObjectName name) throws Exception {
        String[] names = Arrays.stream(beans.getMBeanInfo(name).getAttributes())
            .filter(MBeanAttributeInfo::isReadable).map(MBeanAttributeInfo::getName).toArray(String[]::new);
        Map<String, Object> values = new LinkedHashMap<>();
        for (Attribute attribute : beans.getAttributes(name, names).asList()) {
            values.put(attribute.getName(), attribute.getValue());
        }
        return values;
    }

    /** Converts a value to JSON's types: maps, lists, numbers and booleans; everything else becomes text. */
    private static Object plain(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return value;
        }
        if (value instanceof CompositeData data) {
            Map<String, Object> fields = new LinkedHashMap<>();
            data.getCompositeType().keySet().forEach(key -> fields.put(key, plain(data.get(key))));
            return fields;
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> entries = new LinkedHashMap<>();
            map.forEach((key, each) -> entries.put(String.valueOf(key), plain(each)));
            return entries;
        }
        if (value instanceof TabularData table) {
            return plain(table.values());
        }
        if (value instanceof Iterable<?> many) {
            List<Object> list = new ArrayList<>();
            many.forEach(each -> list.add(plain(each)));
            return list;
        }
        return value.getClass().isArray() ? list(value) : value.toString();
    }

    private static List<Object> list(Object array) {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < Array.getLength(array); i++) {
            list.add(plain(Array.get(array, i)));
        }
        return list;
    }
}
