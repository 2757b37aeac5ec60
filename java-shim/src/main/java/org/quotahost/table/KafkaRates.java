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
    private static final String DELAY = "throttle-time";
    private static final Reading UNMEASURED = new Reading(Double.NaN, Double.NaN, false, Double.NaN);
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

    /**
     * What Kafka measures for one scope now.
     *
     * @param rate its own and its twin's together, in the type's unit; NaN for unknown
     * @param delayMs the longer of both; NaN for unknown
     * @param slowedMore whether that is the twin's
     * @param tokens how many are left in the bucket of partition mutations (TokenBucket), below 0 if Kafka refuses; NaN if there
     *     is no bucket. Only the bucket of the active controller is charged
     */
    record Reading(double rate, double delayMs, boolean slowedMore, double tokens) {}

    /** Reads all of it. */
    static Reading read(ClientQuotaType type, Tags tags) {
        Twin twin = tags.twin();
        Reading own = read(type, (TagPair) tags);
        if (twin == null) return own;
        Reading slowed = read(type, (TagPair) twin);
        boolean more = slowed.delayMs > 0 && !(own.delayMs >= slowed.delayMs);
        double rate = Double.isNaN(slowed.rate) ? own.rate : Double.isNaN(own.rate) ? slowed.rate : own.rate + slowed.rate;
        double delayMs = Double.isNaN(own.delayMs) || more ? slowed.delayMs : own.delayMs;
        return new Reading(rate, delayMs, more, Double.isNaN(own.tokens) ? slowed.tokens : own.tokens);
    }

    /** One attribute after the other: if one is missing, Kafka's getAttributes() writes a warning to the broker's log. */
    private static Reading read(ClientQuotaType type, TagPair tags) {
        ObjectName name = name(type, tags);
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        double rate = now(server, name, RATES.get(type));
        if (Double.isNaN(rate)) return UNMEASURED;
        double tokens = type == ClientQuotaType.CONTROLLER_MUTATION ? now(server, name, "tokens") : Double.NaN;
        return new Reading(rate, now(server, name, DELAY), false, tokens);
    }

    private static double now(MBeanServer server, ObjectName name, String attribute) {
        Double number = name == null ? null : number(server, name, attribute);
        return number == null ? Double.NaN : number;
    }

    /** Null if JMX can't have such a name. */
    private static ObjectName name(ClientQuotaType type, TagPair tags) {
        try {
            return new ObjectName("kafka.server:type=" + BEANS.get(type) + key(Tags.USER, tags.user)
                    + key(Tags.CLIENT_ID, tags.clientId));
        } catch (JMException | RuntimeException e) {
            return null;
        }
    }

    private static String key(String tag, String value) {
        return value.isEmpty() ? "" : "," + tag + "=" + Sanitized.bean(value);
    }

    private static Double number(MBeanServer server, ObjectName name, String attribute) {
        try {
            return server.getAttribute(name, attribute) instanceof Double rate && Double.isFinite(rate) ? rate : null;
        } catch (JMException | RuntimeException e) {
            return null; // Kafka dropped the sensor between the query and now
        }
    }

    private static String plain(String value) {
        return value == null ? "" : value.startsWith("\"") ? ObjectName.unquote(value) : value;
    }
}
