package org.quotahost.topics;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/**
 * Reads Kafka's meters of the bytes that producers append, of all topics together and of each topic.
 *
 * <p>They are MBeans of this JVM: kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec[,topic=...]. ReplicaManager
 * marks them after the append. A topic has a meter from its first append on this broker until the broker leads none
 * of its partitions any more. CarriedRate makes of the readings a rate as of now.
 */
public final class TopicMeters {
    private static final String GROUP = "kafka.server:type=BrokerTopicMetrics,name=";
    private static final ObjectName TOTAL = name(GROUP + "BytesInPerSec");
    private static final ObjectName OF_TOPICS = name(GROUP + "BytesInPerSec,topic=*");
    private static final String[] ATTRIBUTES = {"OneMinuteRate", "Count"};

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private Map<String, ObjectName> topics = Map.of();

    /** One meter: its one-minute rate in bytes/s as of its last tick, and its bytes since it was made. */
    record Reading(double rate, long count) {}

    /** The meter of all topics, null if there is none. */
    Reading total() {
        return read(TOTAL);
    }

    /** The meter of one topic that list() found, null if it has gone. */
    Reading of(String topic) {
        return read(topics.get(topic));
    }

    /**
     * The topics that have a meter. It searches all of Kafka's MBeans, so the caller does it every few seconds only.
     */
    Set<String> list() {
        Map<String, ObjectName> found = new HashMap<>();
        for (ObjectName name : server.queryNames(OF_TOPICS, null)) found.put(plain(name.getKeyProperty("topic")), name);
        topics = found;
        return found.keySet();
    }

    /** The count of another one of Kafka's meters of all topics together, 0 if there is none. */
    public static double count(String meter) {
        try {
            Object count = ManagementFactory.getPlatformMBeanServer().getAttribute(name(GROUP + meter), "Count");
            return count instanceof Number number ? number.doubleValue() : 0;
        } catch (JMException e) {
            return 0;
        }
    }

    private Reading read(ObjectName name) {
        if (name == null) return null;
        try {
            var values = server.getAttributes(name, ATTRIBUTES);
            if (values.size() != 2) return null;
            return new Reading(number(values.get(0)).doubleValue(), number(values.get(1)).longValue());
        } catch (JMException e) {
            return null; // the meter has gone since it was listed
        }
    }

    private static Number number(Object attribute) {
        return (Number) ((Attribute) attribute).getValue();
    }

    private static ObjectName name(String text) {
        try {
            return new ObjectName(text);
        } catch (MalformedObjectNameException e) {
            throw new IllegalArgumentException(text, e);
        }
    }

    private static String plain(String value) {
        return value.startsWith("\"") ? ObjectName.unquote(value) : value;
    }
}
