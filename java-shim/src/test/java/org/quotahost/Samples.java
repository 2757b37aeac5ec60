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
 * Each property tries the same samples each time, so that a test fails because of a change and not by chance;
 * {@code -Dsearching=10} tries new ones, ten times as many. jqwik's own parameters have no seed.
 */
public final class Samples implements AroundPropertyHook {
    private static final int TRIES = 300;

    /** Texts of one hash, which are easily made: 2 to this power. */
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
