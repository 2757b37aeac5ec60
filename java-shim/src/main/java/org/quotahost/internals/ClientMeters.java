package org.quotahost.internals;

import java.lang.management.ManagementFactory;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Sanitized;

/**
 * Reads what Kafka measures for its quotas, by the two values of the metric tags.
 *
 * <p>They are MBeans of this JVM, which Kafka's JmxReporter (on by default) registers:
 * kafka.server:type=Produce|Fetch|Request|ControllerMutation,user=...,client-id=.... A tag whose value is empty is left
 * out of the name. These names are no public API. One MBean is read at a time, by its name: a search through all of them
 * would hold a lock meanwhile that Kafka needs for each new sensor. JMX takes locks, so no request thread may come here.
 */
public final class ClientMeters {
    /** By quota type. */
    private static final String[] BEANS = {"Produce", "Fetch", "Request", "ControllerMutation"};
    private static final String[] RATES = {"byte-rate", "byte-rate", "request-time", "mutation-rate"};
    private static final int MUTATION = ClientQuotaType.CONTROLLER_MUTATION.ordinal();
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();
    /** Kafka counts its metrics by one, which has an MBean as soon as a JmxReporter shows any (Metrics). */
    private static final String ANY = "kafka.server:type=kafka-metrics-count";

    private ClientMeters() {}

    /** Finds out, at the start, whether Kafka shows any of its metrics in JMX at all. */
    public static void lookFor(Map<String, ?> configs) {
        String reporters = BrokerConfigs.text(configs.get("metric.reporters"));
        boolean isDefault = configs.get("metric.reporters") == null;
        if (isDefault || reporters.contains("JmxReporter") || SERVER.isRegistered(name(ANY))) return;
        Internals.CLIENT_METERS.failed("metric.reporters=" + reporters
                + " has no org.apache.kafka.common.metrics.JmxReporter");
    }

    /**
     * What Kafka measures for one pair of tags now.
     *
     * @param rate in the type's unit; NaN for unknown
     * @param delayMs by how much Kafka has delayed responses lately, in the mean; NaN for unknown
     * @param tokens how many are left in the bucket of partition mutations (TokenBucket), below 0 if Kafka refuses; NaN if
     *     there is no bucket. Only the bucket of the active controller is charged
     */
    public record Reading(double rate, double delayMs, double tokens) {
        /** Of tags for which Kafka has no sensor. */
        public static final Reading NOTHING = new Reading(Double.NaN, Double.NaN, Double.NaN);
    }

    /** All of it. One attribute after the other: if one is missing, getAttributes() of Kafka's MBean logs a warning. */
    public static Reading read(int type, String user, String clientId) {
        ObjectName name = name(type, user, clientId);
        double rate = number(name, RATES[type]);
        if (Double.isNaN(rate)) return Reading.NOTHING;
        return new Reading(rate, number(name, "throttle-time"), type == MUTATION ? number(name, "tokens") : Double.NaN);
    }

    /** The rate alone, in the type's unit; NaN for unknown. */
    public static double rate(int type, String user, String clientId) {
        return number(name(type, user, clientId), RATES[type]);
    }

    private static ObjectName name(int type, String user, String clientId) {
        return name("kafka.server:type=" + BEANS[type] + key("user", user) + key("client-id", clientId));
    }

    private static String key(String tag, String value) {
        return value.isEmpty() ? "" : "," + tag + "=" + Sanitized.bean(value);
    }

    /** Null if JMX can't have such a name. */
    private static ObjectName name(String text) {
        try {
            return new ObjectName(text);
        } catch (JMException e) {
            return null;
        }
    }

    private static double number(ObjectName name, String attribute) {
        // To ask whether it is there is quicker than the exception.
        if (name == null || Internals.CLIENT_METERS.isTakenAway() || !SERVER.isRegistered(name)) return Double.NaN;
        try {
            Object value = SERVER.getAttribute(name, attribute);
            return value instanceof Double number && Double.isFinite(number) ? number : Double.NaN;
        } catch (JMException | RuntimeException e) {
            return Double.NaN; // Kafka drops the sensor just now
        }
    }
}
