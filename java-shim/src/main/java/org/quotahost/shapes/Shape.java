package org.quotahost.shapes;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** What a type of Kafka's asks of those who implement it: its methods, or an enum's constants. */
final class Shape {
    static final String ABSTRACT = "abstract";
    static final String DEFAULT = "default";
    static final String CONSTANT = "constant";

    private Shape() {}

    /** By member, such as {@code Double quotaLimit(ClientQuotaType, Map)}, its kind; types are erased simple names. */
    static SortedMap<String, String> of(Class<?> type) {
        SortedMap<String, String> members = new TreeMap<>();
        if (type.isEnum()) {
            for (Object constant : type.getEnumConstants()) members.put(constant.toString(), CONSTANT);
            return members;
        }
        for (Method method : type.getMethods()) {
            if (isAsked(method)) members.put(member(method), method.isDefault() ? DEFAULT : ABSTRACT);
        }
        return members;
    }

    /** Kafka calls neither a static method nor a compiler's bridge of those who implement it. */
    static boolean isAsked(Method method) {
        return !Modifier.isStatic(method.getModifiers()) && !method.isSynthetic();
    }

    static String member(Method method) {
        return Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).collect(
                Collectors.joining(", ", method.getReturnType().getSimpleName() + " " + method.getName() + "(", ")"));
    }
}
