package org.quotahost.metrics;

import java.util.Map;
import java.util.function.DoubleSupplier;
import javax.management.DynamicMBean;

/** MBeans with numbers, as Kafka's meters and sensors have them. */
public final class NumberBean {
    private NumberBean() {}

    public static DynamicMBean of(Map<String, DoubleSupplier> attributes) {
        GaugeBean bean = new GaugeBean();
        attributes.forEach(bean::put);
        return bean;
    }
}
