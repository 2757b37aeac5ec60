package org.quotahost.shapes;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * What is different in a type of this Kafka's, in words.
 *
 * @param type the type's simple name
 * @param news members that no known version has, and that harm nobody by that
 * @param unserved methods without a default that our class has not
 * @param gone members that all known versions have
 * @param versions the known versions, such as {@code 4.0 to 4.4}
 */
record Comparison(String type, Set<String> news, Set<String> unserved, Set<String> gone, String versions) {
    /** Deprecated since Kafka 4.4; 5.0 will not have it (KAFKA-19566). ClusterLook does without it. */
    private static final Set<String> DISPENSABLE = Set.of("boolean updateClusterMetadata(Cluster)");
    private static final String REMEDY = "look for a quotahost that was made for this Kafka";

    /** Compares a type of this Kafka's; {@code ours} is the class that implements it, null for an enum. */
    static Comparison of(KnownShapes known, String type, Class<?> kafkas, Class<?> ours) {
        Map<String, String> shape = Shape.of(kafkas);
        Set<String> news = new TreeSet<>(shape.keySet());
        Set<String> gone = new TreeSet<>(known.alwaysSeen(type));
        news.removeAll(known.everSeen(type));
        gone.removeAll(shape.keySet());
        gone.removeAll(DISPENSABLE);
        Set<String> unserved = new TreeSet<>(shape.keySet());
        unserved.removeIf(member -> !Shape.ABSTRACT.equals(shape.get(member)) || serves(ours, kafkas, member));
        news.removeAll(unserved);
        return new Comparison(type, news, unserved, gone, known.versions(type));
    }

    private static boolean serves(Class<?> ours, Class<?> kafkas, String member) {
        return ours == null || Arrays.stream(kafkas.getMethods()).filter(asked -> Shape.member(asked).equals(member))
                .anyMatch(asked -> has(ours, asked));
    }

    private static boolean has(Class<?> ours, Method asked) {
        try {
            return !Modifier.isAbstract(ours.getMethod(asked.getName(), asked.getParameterTypes()).getModifiers());
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    boolean isUnknown() {
        return !news.isEmpty() || !unserved.isEmpty() || !gone.isEmpty();
    }

    /** One sentence for an operator; only of what is unknown. */
    String sentence() {
        StringBuilder text = new StringBuilder("This Kafka's " + type + " is none that quotahost knows (those of " + versions + "):");
        if (!unserved.isEmpty()) text.append(" it demands ").append(list(unserved)).append(", which quotahost cannot answer;");
        if (!news.isEmpty()) text.append(" it has also ").append(list(news)).append(", ").append(effect()).append(';');
        if (!gone.isEmpty()) text.append(" it no longer has ").append(list(gone)).append(", so what quotahost does there is not asked for;");
        return text.append(' ').append(REMEDY).toString();
    }

    private String effect() {
        if (type.equals("ClientQuotaType")) return "which quotahost leaves unlimited";
        return type.endsWith("Authorizer") ? "which is not passed on to the inner authorizer" : "for which Kafka's own default applies";
    }

    private static String list(Set<String> members) {
        return members.stream().collect(Collectors.joining("; "));
    }
}
