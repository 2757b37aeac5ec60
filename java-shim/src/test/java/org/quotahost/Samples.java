package org.quotahost;

import java.util.List;
import java.util.stream.Stream;
import net.jqwik.api.lifecycle.AroundPropertyHook;
import net.jqwik.api.lifecycle.PropagationMode;
import net.jqwik.api.lifecycle.PropertyAttributes;
import net.jqwik.api.lifecycle.PropertyExecutionResult;
import net.jqwik.api.lifecycle.PropertyExecutor;
import net.jqwik.api.lifecycle.PropertyLifecycleContext;

/**
 * The seed of all properties: each run uses the same samples, so that only a change makes a test fail, and not chance.
 * {@code -Dsearching=10} uses new samples, ten times as many. jqwik's own parameters have no seed.
 */
public final class Samples implements AroundPropertyHook {
    private static final int TRIES = 300;

    /** Returns 2 to this power texts with one hash; such texts are easy to make. */
    public static List<String> ofOneHash(int power) {
        List<String> texts = List.of("");
        for (int i = 0; i < power; i++) texts = texts.stream().flatMap(text -> Stream.of(text + "Aa", text + "BB")).toList();
        return texts;
    }

    @Override
    public PropagationMode propagateTo() {
        return PropagationMode.ALL_DESCENDANTS;
    }

    @Override
    public PropertyExecutionResult aroundProperty(PropertyLifecycleContext context, PropertyExecutor property) {
        PropertyAttributes attributes = context.attributes();
        int searching = Integer.getInteger("searching", 0);
        attributes.setTries(attributes.tries().orElse(TRIES) * Math.max(1, searching));
        if (searching == 0) attributes.setSeed("16");
        return property.execute();
    }
}
