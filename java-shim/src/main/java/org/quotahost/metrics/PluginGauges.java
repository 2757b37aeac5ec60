package org.quotahost.metrics;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Numbers that Python sets: the host's own and those of plugins, shown beside the shim's as MBeans and for
 * Prometheus.
 *
 * <p>Gauges are read by JMX at any time and must not call Python, so Python writes each number here when it changes.
 * Any thread may call.
 */
public final class PluginGauges {
    private record Key(String type, String name, String attribute) {}

    private final Gauges gauges;
    private final Map<Key, AtomicReference<Double>> values = new HashMap<>();

    public PluginGauges(Gauges gauges) {
        this.gauges = gauges;
    }

    /** Sets a number; the first call makes its gauge. */
    public synchronized void set(String type, String name, String attribute, double value) {
        value(new Key(type, name, attribute)).set(value);
    }

    /** Adds to a number, which begins at 0. */
    public synchronized void add(String type, String name, String attribute, double by) {
        value(new Key(type, name, attribute)).updateAndGet(before -> before + by);
    }

    /** Takes away all numbers of one MBean, unless Python has set none of them. */
    public synchronized void remove(String type, String name) {
        if (values.keySet().removeIf(key -> key.type.equals(type) && key.name.equals(name))) gauges.remove(type, name);
    }

    private AtomicReference<Double> value(Key key) {
        return values.computeIfAbsent(key, k -> {
            AtomicReference<Double> value = new AtomicReference<>(0.0);
            gauges.add(k.type, k.name, k.attribute, value::get);
            return value;
        });
    }
}
