package org.quotahost.table;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import javax.management.JMException;
import javax.management.ObjectName;
import javax.management.StandardMBean;

/** MBeans as Kafka's JmxReporter registers them for the sensors of quotas. */
final class KafkaBeans implements AutoCloseable {
    public interface NumbersMBean {}

    private static final class Numbers implements NumbersMBean {}

    private final List<ObjectName> shown = new ArrayList<>();

    /**
     * @param type Produce or Fetch
     * @param tags as they stand in the MBean's name: ",user=alice,client-id=app"
     * @param rate in bytes/s
     * @param delay in ms
     */
    void show(String type, String tags, double rate, double delay) throws JMException {
        ObjectName name = new ObjectName("kafka.server:type=" + type + tags);
        var bean = new StandardMBean(new Numbers(), NumbersMBean.class) {
            @Override
            public Object getAttribute(String attribute) {
                return attribute.equals("byte-rate") ? rate : attribute.equals("throttle-time") ? delay : null;
            }
        };
        ManagementFactory.getPlatformMBeanServer().registerMBean(bean, name);
        shown.add(name);
    }

    @Override
    public void close() {
        for (ObjectName name : shown) {
            try {
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
            } catch (JMException e) {
                throw new IllegalStateException(e);
            }
        }
        shown.clear();
    }
}
