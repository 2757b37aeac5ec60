package org.quotahost.internals;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Says what a broker would say at its start of the Kafka on the class path, for {@code quotahost doctor}.
 *
 * <p>A line is {@code weak} or {@code wrong}, a tab, and a sentence; the last one is {@code end}. Without a Kafka it ends
 * with an exception.
 */
public final class InternalsTool {
    /** What Kafka loads, by name, since Kafka 4.0 cannot load the last two. */
    private static final List<String> OURS = List.of("org.quotahost.PythonQuotaCallback", "org.quotahost.QuotaFence",
            "org.quotahost.MonitoredPythonQuotaCallback", "org.quotahost.MonitoredQuotaFence");

    private InternalsTool() {}

    public static void main(String[] args) {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        lines().forEach(out::println);
        out.println("end");
    }

    private static Set<String> lines() {
        Set<String> lines = new LinkedHashSet<>();
        for (String name : OURS) {
            try {
                Class<?> ours = Class.forName(name, false, InternalsTool.class.getClassLoader());
                List<String> unserved = KafkaVersion.unserved(ours);
                if (!unserved.isEmpty()) lines.add("wrong\t" + KafkaVersion.sentence(ours, unserved));
            } catch (ClassNotFoundException | LinkageError e) {
                if (name.contains("Monitored")) continue; // this Kafka has no Monitorable
                if (name.equals(OURS.get(0))) throw new IllegalStateException("there is no Kafka on the class path");
                lines.add("wrong\tThis Kafka cannot load " + name + ": " + e);
            }
        }
        Internals.tryAll();
        Internals.all().stream().filter(Internal::missing).forEach(each -> lines.add("weak\t" + each.sentence()));
        return lines;
    }
}
