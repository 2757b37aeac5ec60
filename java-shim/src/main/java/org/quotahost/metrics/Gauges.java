package org.quotahost.metrics;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.TabularData;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Every number that the shim shows: as MBeans quotahost:type=...[,name=...], and as a list for Prometheus.
 *
 * <p>A gauge is a function that is called when somebody reads the number. StandardGauges and PluginGauges add them;
 * Python reads the list for its endpoint (exporter.py), and MonitoredPythonQuotaCallback for Kafka's own metrics.
 */
public final class Gauges {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.metrics");

    /** One number: type and name ("" for none) of its MBean, its attribute there, and the function that reads it. */
    public record Gauge(String type, String name, String attribute, DoubleSupplier value) {}

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Map<ObjectName, GaugeBean> beans = new LinkedHashMap<>();
    private final List<Gauge> gauges = new ArrayList<>();

    /** Adds a number, and its MBean if that is not there yet. */
    public synchronized void add(String type, String name, String attribute, DoubleSupplier value) {
        gauges.add(new Gauge(type, name, attribute, value));
        bean(type, name).put(attribute, value);
    }

    /** Adds a table to the MBean of a type; JMX alone shows it. */
    public synchronized void table(String type, String attribute, Supplier<TabularData> value) {
        bean(type, "").table(attribute, value);
    }

    /** Adds an operation to the MBean of a type: it takes texts and answers lines. */
    public synchronized void operation(String type, String operation, Function<String[], String[]> body) {
        bean(type, "").operation(operation, body);
    }

    /** Takes away one MBean with all its numbers. */
    synchronized void remove(String type, String name) {
        gauges.removeIf(gauge -> gauge.type().equals(type) && gauge.name().equals(name));
        beans.keySet().removeIf(bean -> {
            if (!bean.equals(objectName(type, name))) return false;
            unregister(bean);
            return true;
        });
    }

    public synchronized List<Gauge> all() {
        return List.copyOf(gauges);
    }

    /** The names of the MBeans of a type in which an attribute has this value now. */
    public synchronized List<String> names(String type, String attribute, double value) {
        return gauges.stream().filter(gauge -> gauge.type().equals(type) && gauge.attribute().equals(attribute))
                .filter(gauge -> gauge.value().getAsDouble() == value).map(Gauge::name).toList();
    }

    public synchronized void close() {
        beans.keySet().forEach(this::unregister);
        beans.clear();
        gauges.clear();
    }

    private void unregister(ObjectName name) {
        try {
            server.unregisterMBean(name);
        } catch (JMException e) {
            LOG.debug("The MBean {} was unregistered already", name);
        }
    }

    private static ObjectName objectName(String type, String name) {
        try {
            return new ObjectName("quotahost:type=" + type + (name.isEmpty() ? "" : ",name=" + quoted(name)));
        } catch (JMException e) {
            throw new IllegalArgumentException("no MBean can be named " + type + " " + name, e);
        }
    }

    private GaugeBean bean(String type, String name) {
        try {
            ObjectName objectName = objectName(type, name);
            GaugeBean known = beans.get(objectName);
            if (known != null) return known;
            GaugeBean bean = new GaugeBean();
            beans.put(objectName, bean);
            // An earlier host in this JVM may have left it, and JMX refuses a second MBean of the same name.
            if (server.isRegistered(objectName)) server.unregisterMBean(objectName);
            server.registerMBean(bean, objectName);
            return bean;
        } catch (JMException e) {
            LOG.warn("The MBean quotahost:type={},name={} cannot be registered, so JMX does not show its numbers: {}",
                    type, name, e.toString());
            return new GaugeBean();
        }
    }

    private static String quoted(String name) {
        return name.matches("[\\w.-]+") ? name : ObjectName.quote(name);
    }
}
