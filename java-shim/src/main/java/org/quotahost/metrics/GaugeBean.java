package org.quotahost.metrics;

import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.MBeanOperationInfo;
import javax.management.MBeanParameterInfo;
import javax.management.ReflectionException;
import javax.management.openmbean.TabularData;

/**
 * An MBean whose attributes are read-only numbers and tables, and whose operations take two texts (most of them a principal
 * and a client-id) and answer lines.
 *
 * <p>JMX would want an interface for each set of attributes; a DynamicMBean describes itself, so Gauges can add to
 * it.
 */
final class GaugeBean implements DynamicMBean {
    private final Map<String, DoubleSupplier> attributes = new ConcurrentSkipListMap<>();
    private final Map<String, Supplier<TabularData>> tables = new ConcurrentSkipListMap<>();
    private final Map<String, Function<String[], String[]>> operations = new ConcurrentSkipListMap<>();

    void put(String attribute, DoubleSupplier value) {
        attributes.put(attribute, value);
    }

    void table(String attribute, Supplier<TabularData> value) {
        tables.put(attribute, value);
    }

    void operation(String name, Function<String[], String[]> body) {
        operations.put(name, body);
    }

    @Override
    public Object getAttribute(String name) throws AttributeNotFoundException {
        DoubleSupplier value = attributes.get(name);
        if (value != null) return value.getAsDouble();
        Supplier<TabularData> table = tables.get(name);
        if (table == null) throw new AttributeNotFoundException(name);
        return table.get();
    }

    @Override
    public AttributeList getAttributes(String[] names) {
        AttributeList list = new AttributeList();
        for (String name : names) {
            DoubleSupplier value = attributes.get(name);
            Supplier<TabularData> table = tables.get(name);
            if (value != null) list.add(new Attribute(name, value.getAsDouble()));
            else if (table != null) list.add(new Attribute(name, table.get()));
        }
        return list;
    }

    @Override
    public Object invoke(String name, Object[] parameters, String[] signature) throws ReflectionException {
        Function<String[], String[]> body = operations.get(name);
        if (body == null) throw new ReflectionException(new NoSuchMethodException(name));
        String[] texts = new String[parameters.length];
        for (int i = 0; i < texts.length; i++) texts[i] = String.valueOf(parameters[i]);
        return body.apply(texts);
    }

    @Override
    public MBeanInfo getMBeanInfo() {
        var infos = Stream.concat(attributes.keySet().stream().map(name -> info(name, "double")),
                tables.keySet().stream().map(name -> info(name, TabularData.class.getName())))
                .toArray(MBeanAttributeInfo[]::new);
        var two = new MBeanParameterInfo[] {
            new MBeanParameterInfo("principal", "java.lang.String", "principal name"),
            new MBeanParameterInfo("clientId", "java.lang.String", "client-id"),
        };
        var known = operations.keySet().stream()
                .map(name -> new MBeanOperationInfo(name, name, two, "[Ljava.lang.String;", MBeanOperationInfo.INFO))
                .toArray(MBeanOperationInfo[]::new);
        return new MBeanInfo(getClass().getName(), "quotahost", infos, null, known, null);
    }

    private static MBeanAttributeInfo info(String name, String type) {
        return new MBeanAttributeInfo(name, type, name, true, false, false);
    }

    @Override
    public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
        throw new AttributeNotFoundException(attribute.getName() + " is read-only");
    }

    @Override
    public AttributeList setAttributes(AttributeList list) {
        return new AttributeList();
    }
}
