package org.quotahost.metrics;

import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.TabularData;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Every number that the shim, the Python host and its plugins show: as MBeans quotahost:type=...[,name=...], and as a
 * list for Prometheus (exporter.py) and for Kafka's own metrics (MonitoredPythonQuotaCallback).
 *
 * <p>A number of Java's is a function that is called when somebody reads it. JMX reads at any time and must not call
 * Python, so Python writes each of its numbers here when it changes. Any thread may call.
 */
public final class Gauges {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.metrics");

    /** One number: type and name ("" for none) of its MBean, its attribute there, and the function that reads it. */
    public record Gauge(String type, String name, String attribute, DoubleSupplier value) {}

    private record Key(String type, String name) {
        ObjectName objectName() throws JMException {
            String quoted = name.matches("[\\w.-]+") ? name : ObjectName.quote(name);
            return new ObjectName("quotahost:type=" + type + (name.isEmpty() ? "" : ",name=" + quoted));
        }
    }

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Map<Key, Bean> beans = new LinkedHashMap<>();

    /** Adds a number, and its MBean if that is not there yet. */
    public synchronized void add(String type, String name, String attribute, DoubleSupplier value) {
        bean(type, name).attributes.put(attribute, value);
    }

    /** Adds a table to the MBean of a type; JMX alone shows it. */
    public synchronized void table(String type, String attribute, Supplier<TabularData> value) {
        bean(type, "").attributes.put(attribute, value);
    }

    /**
     * Has a number of Python's read otherwise while Python cannot set it.
     *
     * @param instead what is shown then, or NaN to show what Python has set last
     */
    public synchronized void overrule(String type, String name, String attribute, DoubleSupplier instead) {
        number(type, name, attribute).instead = instead;
    }

    // ---- Python's --------------------------------------------------------------------------------------------

    /** Sets a number; the first call makes its gauge. */
    public synchronized void set(String type, String name, String attribute, double value) {
        number(type, name, attribute).value = value;
    }

    /** Adds to a number, which begins at 0. */
    public synchronized void count(String type, String name, String attribute, double by) {
        number(type, name, attribute).value += by;
    }

    /** Takes away one MBean with all its numbers, unless Python has set none of them. */
    public synchronized void forget(String type, String name) {
        Key key = new Key(type, name);
        Bean bean = beans.get(key);
        if (bean != null && bean.attributes.values().stream().anyMatch(Number.class::isInstance)) {
            beans.remove(key);
            unregister(key);
        }
    }

    // ---- readers ---------------------------------------------------------------------------------------------

    /** All numbers, in the order in which their MBeans came. */
    public synchronized List<Gauge> all() {
        return beans.entrySet().stream().flatMap(bean -> bean.getValue().attributes.entrySet().stream()
                .filter(attribute -> attribute.getValue() instanceof DoubleSupplier)
                .map(attribute -> new Gauge(bean.getKey().type, bean.getKey().name, attribute.getKey(),
                        (DoubleSupplier) attribute.getValue()))).toList();
    }

    /** The names of the MBeans of a type in which an attribute has this value now. */
    public List<String> names(String type, String attribute, double value) {
        return all().stream().filter(gauge -> gauge.type.equals(type) && gauge.attribute.equals(attribute))
                .filter(gauge -> gauge.value.getAsDouble() == value).map(Gauge::name).toList();
    }

    public synchronized void close() {
        beans.keySet().forEach(this::unregister);
        beans.clear();
    }

    // ---- MBeans ----------------------------------------------------------------------------------------------

    private Number number(String type, String name, String attribute) {
        return (Number) bean(type, name).attributes.compute(attribute,
                (key, known) -> known instanceof Number number ? number : new Number());
    }

    private Bean bean(String type, String name) {
        return beans.computeIfAbsent(new Key(type, name), key -> {
            Bean bean = new Bean();
            // An earlier host in this JVM may have left it, and JMX refuses a second MBean of the same name.
            unregister(key);
            try {
                server.registerMBean(bean, key.objectName());
            } catch (JMException e) {
                LOG.warn("The MBean {} cannot be registered, so JMX does not show its numbers: {}", key, e.toString());
            }
            return bean;
        });
    }

    private void unregister(Key key) {
        try {
            server.unregisterMBean(key.objectName());
        } catch (JMException e) {
            LOG.debug("The MBean {} is not registered", key);
        }
    }

    /** A number that Python sets. */
    private static final class Number implements DoubleSupplier {
        private volatile double value;
        private volatile DoubleSupplier instead = () -> Double.NaN;

        @Override
        public double getAsDouble() {
            double now = instead.getAsDouble();
            return Double.isNaN(now) ? value : now;
        }
    }

    /**
     * An MBean whose attributes are read-only: numbers, each a DoubleSupplier, and tables, each a Supplier.
     *
     * <p>JMX would want an interface for each set of attributes; a DynamicMBean describes itself, so that attributes
     * can be added while it is there.
     */
    static final class Bean implements DynamicMBean {
        final Map<String, Object> attributes = new ConcurrentSkipListMap<>();

        @Override
        public Object getAttribute(String name) throws AttributeNotFoundException {
            Object value = attributes.get(name);
            if (value == null) throw new AttributeNotFoundException(name);
            return read(value);
        }

        @Override
        public AttributeList getAttributes(String[] names) {
            AttributeList list = new AttributeList();
            for (String name : names) {
                Object value = attributes.get(name);
                if (value != null) list.add(new Attribute(name, read(value)));
            }
            return list;
        }

        private static Object read(Object value) {
            return value instanceof DoubleSupplier number ? (Object) number.getAsDouble() : ((Supplier<?>) value).get();
        }

        @Override
        public MBeanInfo getMBeanInfo() {
            var infos = attributes.entrySet().stream().map(attribute -> new MBeanAttributeInfo(attribute.getKey(),
                    attribute.getValue() instanceof DoubleSupplier ? "double" : TabularData.class.getName(),
                    attribute.getKey(), true, false, false)).toArray(MBeanAttributeInfo[]::new);
            return new MBeanInfo(getClass().getName(), "quotahost", infos, null, null, null);
        }

        @Override
        public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
            throw new AttributeNotFoundException(attribute.getName() + " is read-only");
        }

        @Override
        public AttributeList setAttributes(AttributeList list) {
            return new AttributeList();
        }

        @Override
        public Object invoke(String name, Object[] parameters, String[] signature) {
            throw new UnsupportedOperationException(name);
        }
    }
}
