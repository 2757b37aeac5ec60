package org.quotahost.metrics;

import java.util.Map;
import java.util.function.DoubleSupplier;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.MBeanInfo;

/** An MBean with numbers, as Kafka's meters and sensors have them. */
public record NumberBean(Map<String, DoubleSupplier> attributes) implements DynamicMBean {
    @Override
    public Object getAttribute(String name) throws AttributeNotFoundException {
        if (!attributes.containsKey(name)) throw new AttributeNotFoundException(name);
        return attributes.get(name).getAsDouble();
    }

    @Override
    public MBeanInfo getMBeanInfo() {
        return new MBeanInfo(NumberBean.class.getName(), "", null, null, null, null);
    }

    @Override
    public AttributeList getAttributes(String[] names) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void setAttribute(Attribute attribute) {
        throw new UnsupportedOperationException();
    }

    @Override
    public AttributeList setAttributes(AttributeList list) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Object invoke(String name, Object[] parameters, String[] signature) {
        throw new UnsupportedOperationException();
    }
}
