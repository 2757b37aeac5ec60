package org.quotahost.table;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.Sanitized;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads what Kafka measures for its quotas, rates and tokens, by the two values of the metric tags. What it measures for
 * a twin counts with the scope's own.
 *
 * <p>They are MBeans of this JVM, which Kafka's JmxReporter (on by default) registers:
 * kafka.server:type=Produce|Fetch,user=...,client-id=..., attribute byte-rate. A tag whose value is empty is left out
 * of the name. JMX takes locks, so no request thread may come here.
 */
final class KafkaRates {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.rates");
    /** The MBeans of the types whose rates are bytes/s. */
    private static final Map<ClientQuotaType, String> BYTES =
            Map.of(ClientQuotaType.PRODUCE, "Produce", ClientQuotaType.FETCH, "Fetch");
    /** The MBeans of all types, and the attribute of each that is its rate. */
    private static final Map<ClientQuotaType, String> BEANS = Map.of(ClientQuotaType.PRODUCE, "Produce",
            ClientQuotaType.FETCH, "Fetch", ClientQuotaType.REQUEST, "Request",
            ClientQuotaType.CONTROLLER_MUTATION, "ControllerMutation");
    private static final Map<ClientQuotaType, String> RATES = Map.of(ClientQuotaType.PRODUCE, "byte-rate",
            ClientQuotaType.FETCH, "byte-rate", ClientQuotaType.REQUEST, "request-time",
            ClientQuotaType.CONTROLLER_MUTATION, "mutation-rate");
    private static volatile boolean warned;

    private KafkaRates() {}

    /**
     * The rates of all scopes of a type now, in bytes/s by (user tag, client-id tag); empty for types without bytes.
     */
    static Map<List<String>, Double> of(ClientQuotaType type) {
        Map<List<String>, Double> rates = new HashMap<>();
        String bean = BYTES.get(type);
        if (bean == null) return rates;
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            for (ObjectName name : server.queryNames(new ObjectName("kafka.server:type=" + bean + ",*"), null)) {
                String user = name.getKeyProperty(Tags.USER);
                String clientId = name.getKeyProperty(Tags.CLIENT_ID);
                if (user == null && clientId == null) continue;
                Double rate = number(server, name, "byte-rate");
                String own = Twin.ownUser(plain(user));
                if (rate != null) rates.merge(List.of(own == null ? plain(user) : own, plain(clientId)), rate, Double::sum);
            }
        } catch (JMException | RuntimeException e) {
            if (!warned) {
                LOG.warn("Kafka's measured rates can't be read; for unlimited clients the factor multiplies the"
                        + " rates of newcomers.* instead", e);
            }
            warned = true;
        }
        return rates;
    }

    /** The rate that Kafka measures for one scope now, in the type's unit; NaN for unknown. */
    static double rate(ClientQuotaType type, Tags tags) {
        double own = now(type, tags, RATES.get(type));
        Twin twin = tags.twin();
        double slowed = twin == null ? Double.NaN : now(type, twin, RATES.get(type));
        return Double.isNaN(slowed) ? own : Double.isNaN(own) ? slowed : own + slowed;
    }

    /** By how many ms Kafka has delayed the clients of one scope lately; NaN for unknown. */
    static double delayMs(ClientQuotaType type, Tags tags) {
        double own = now(type, tags, "throttle-time");
        Twin twin = tags.twin();
        double slowed = twin == null ? Double.NaN : now(type, twin, "throttle-time");
        return Double.isNaN(own) || slowed > own ? slowed : own;
    }

    /**
     * The tokens that are left in one scope's bucket of partition mutations (TokenBucket): below 0 Kafka refuses. NaN
     * if there is no bucket, or for another type. Only the bucket of the active controller is charged.
     */
    static double tokens(ClientQuotaType type, Tags tags) {
        return type == ClientQuotaType.CONTROLLER_MUTATION ? now(type, tags, "tokens") : Double.NaN;
    }

    private static double now(ClientQuotaType type, TagPair tags, String attribute) {
        try {
            ObjectName name = new ObjectName("kafka.server:type=" + BEANS.get(type) + key(Tags.USER, tags.user)
                    + key(Tags.CLIENT_ID, tags.clientId));
            Double number = number(ManagementFactory.getPlatformMBeanServer(), name, attribute);
            return number == null ? Double.NaN : number;
        } catch (JMException | RuntimeException e) {
            return Double.NaN;
        }
    }

    private static String key(String tag, String value) {
        return value.isEmpty() ? "" : "," + tag + "=" + Sanitized.bean(value);
    }

    private static Double number(MBeanServer server, ObjectName name, String attribute) {
        try {
            return server.getAttribute(name, attribute) instanceof Double rate && Double.isFinite(rate) ? rate : null;
        } catch (JMException e) {
            return null; // Kafka dropped the sensor between the query and now
        }
    }

    private static String plain(String value) {
        return value == null ? "" : value.startsWith("\"") ? ObjectName.unquote(value) : value;
    }
}
