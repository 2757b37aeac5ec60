package org.quotahost.shapes;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Looks at the Kafka on the class path, for {@code quotahost doctor} and for tools/kafka_shapes.py.
 *
 * <p>{@code compare} writes a line for each interface that is unknown: {@code weak} or {@code wrong}, a tab, and the
 * sentence. {@code show} writes {@code TYPE, KIND, MEMBER} with tabs between them. The last line of both is {@code end}.
 * Without a Kafka it ends with an exception.
 */
public final class ShapesTool {
    /** What Kafka loads, by name, since Kafka 4.0 cannot load the last two. */
    private static final List<String> OURS = List.of("org.quotahost.PythonQuotaCallback", "org.quotahost.QuotaFence",
            "org.quotahost.MonitoredPythonQuotaCallback", "org.quotahost.MonitoredQuotaFence");
    private static final List<String> KAFKAS = List.of("org.apache.kafka.server.quota.ClientQuotaType",
            "org.apache.kafka.server.quota.ClientQuotaCallback", "org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer",
            "org.apache.kafka.common.Reconfigurable", "org.apache.kafka.common.metrics.Monitorable");

    private ShapesTool() {}

    public static void main(String[] args) {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        (args.length == 1 && args[0].equals("show") ? show() : compare()).forEach(out::println);
        out.println("end");
    }

    private static Set<String> compare() {
        KnownShapes known = KnownShapes.read();
        Set<String> lines = new LinkedHashSet<>();
        List<Class<?>> loaded = loaded(OURS);
        if (loaded.isEmpty()) throw new IllegalStateException("there is no Kafka on the class path");
        for (Class<?> ours : loaded) {
            for (Comparison each : KafkaShapes.compare(known, ours)) {
                lines.add((each.unserved().isEmpty() ? "weak\t" : "wrong\t") + each.sentence());
            }
        }
        return lines;
    }

    private static Set<String> show() {
        Set<String> lines = new LinkedHashSet<>();
        for (Class<?> type : loaded(KAFKAS)) {
            Shape.of(type).forEach((member, kind) -> lines.add(String.join("\t", type.getSimpleName(), kind, member)));
        }
        return lines;
    }

    private static List<Class<?>> loaded(List<String> names) {
        List<Class<?>> found = new ArrayList<>();
        for (String name : names) {
            try {
                found.add(Class.forName(name, false, ShapesTool.class.getClassLoader()));
            } catch (ClassNotFoundException | NoClassDefFoundError e) {
                continue; // this Kafka has no such type, or none that ours needs
            }
        }
        return found;
    }
}
