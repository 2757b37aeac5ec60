package org.quotahost.shapes;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * The shapes of Kafka's types in the versions that quotahost knows, from kafka-shapes.tsv.
 *
 * <p>A line of it is {@code TYPE, KIND, MEMBER, VERSION...} with tabs between them; TYPE is a simple name. The first
 * line of a type names all its versions, from the oldest on.
 */
final class KnownShapes {
    private static final String RESOURCE = "/META-INF/quotahost/kafka-shapes.tsv";

    /** By type and version, each member with its kind. */
    private final Map<String, Map<String, Map<String, String>>> types = new LinkedHashMap<>();

    KnownShapes(Iterable<String> lines) {
        for (String line : lines) {
            String[] fields = line.split("\t");
            if (line.startsWith("#") || fields.length < 4) continue;
            for (int at = 3; at < fields.length; at++) {
                types.computeIfAbsent(fields[0], t -> new LinkedHashMap<>())
                        .computeIfAbsent(fields[at], v -> new LinkedHashMap<>()).put(fields[2], fields[1]);
            }
        }
    }

    /** Those in the jar; of a jar without them nothing is known, and nothing is compared. */
    static KnownShapes read() {
        try (InputStream in = KnownShapes.class.getResourceAsStream(RESOURCE)) {
            if (in == null) return new KnownShapes(List.of());
            var reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
            return new KnownShapes(reader.lines().toList());
        } catch (IOException e) {
            return new KnownShapes(List.of());
        }
    }

    boolean has(String type) {
        return types.containsKey(type);
    }

    /** The members that any version has. */
    Set<String> everSeen(String type) {
        Set<String> seen = new TreeSet<>();
        types.get(type).values().forEach(members -> seen.addAll(members.keySet()));
        return seen;
    }

    /** The members that all versions have. */
    Set<String> alwaysSeen(String type) {
        Set<String> seen = everSeen(type);
        types.get(type).values().forEach(members -> seen.retainAll(members.keySet()));
        return seen;
    }

    /** Such as {@code 4.0 to 4.4}. */
    String versions(String type) {
        List<String> known = List.copyOf(types.get(type).keySet());
        return known.get(0) + " to " + known.get(known.size() - 1);
    }
}
