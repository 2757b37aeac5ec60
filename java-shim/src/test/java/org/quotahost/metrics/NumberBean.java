package org.quotahost.metrics;

import java.util.Map;
import java.util.function.DoubleSupplier;
import javax.management.DynamicMBean;

/** Makes MBeans with numbers, as Kafka's meters and sensors have them. */
public final class NumberBean {
    private NumberBean() {}

    /** @param attributes the function that reads each attribute */
    public static DynamicMBean of(Map<String, DoubleSupplier> attributes) {
        Gauges.Bean bean = new Gauges.Bean();
        bean.attributes.putAll(attributes);
        return bean;
    }
}
