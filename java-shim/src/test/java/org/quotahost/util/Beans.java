package org.quotahost.util;

import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.management.DynamicMBean;
import javax.management.JMException;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** MBeans with numbers, like those of Kafka's sensors and meters. */
public final class Beans implements AutoCloseable {
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();

    private final List<ObjectName> shown = new ArrayList<>();

    /** Registers an MBean with these attributes. */
    public void show(String name, Map<String, ? extends Number> attributes) throws JMException {
        Object bean = Proxy.newProxyInstance(Beans.class.getClassLoader(), new Class<?>[] {DynamicMBean.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getAttribute" -> attributes.get(arguments[0]);
                    case "getMBeanInfo" -> new MBeanInfo("Numbers", "", null, null, null, null);
                    default -> throw new UnsupportedOperationException(method.getName());
                });
        shown.add(SERVER.registerMBean(bean, new ObjectName(name)).getObjectName());
    }

    /** Shows Kafka's measurements of one pair of tags: bytes/s, and the throttle time in ms. */
    public void show(String type, String tags, double rate, double delay) throws JMException {
        show("kafka.server:type=" + type + tags, Map.of("byte-rate", rate, "throttle-time", delay));
    }

    /** Removes all of them. */
    @Override
    public void close() {
        try {
            for (ObjectName name : shown) SERVER.unregisterMBean(name);
        } catch (JMException e) {
            throw new IllegalStateException(e);
        }
        shown.clear();
    }
}
