package org.quotahost.explain;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.quotahost.util.Escape;

/**
 * The Java half of {@code quotahost explain}: asks a running broker of this machine about a client, or its volumes.
 *
 * <p>It is called as {@code java -cp quotahost.jar org.quotahost.explain.Explain BROKER QUESTION [ARGUMENT...]}. BROKER
 * is a process id, {@code broker:N} (a node id), or empty for the only broker there is. The questions are {@code client
 * USER CLIENT}, {@code uses MOST}, {@code volumes}, and {@code retention TOPIC,TOPIC...}. Arguments are escaped (Escape), since a locale
 * may garble them.
 *
 * <p>It writes tab-separated, escaped lines to standard output. The first field of each is its kind, the others are:
 * of broker, pid and node id; of state, name and value; of quota, the fields of Description; of uses, those of ClientUse; of volumes, those of
 * VolumeState; of retention, those of ClusterAdmin; of error, its kind (ExplainException) and details. The exit code is
 * 0, or 2 after an error. It needs the module jdk.attach of a JDK, and no class of Kafka's.
 */
public final class Explain {
    /** By operation, the kind of its lines where that is another word. */
    private static final Map<String, String> KINDS = Map.of("explain", "state", "describe", "quota");

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);

    private Explain() {}

    public static void main(String[] args) {
        System.exit(new Explain().run(args));
    }

    private int run(String[] args) {
        try {
            if (args.length < 2) throw new ExplainException("failed", "needed are BROKER QUESTION [ARGUMENT...]");
            if (ModuleLayer.boot().findModule("jdk.attach").isEmpty()) {
                throw new ExplainException("no-jdk", System.getProperty("java.home"));
            }
            explain(Brokers.one(args[0]), args[1], argument(args, 2), argument(args, 3));
            return 0;
        } catch (ExplainException e) {
            print("error", Escape.fields(e.kind(), e.getMessage()));
        } catch (Exception e) {
            print("error", Escape.fields("failed", e));
        }
        return 2;
    }

    private static String argument(String[] args, int at) {
        return args.length > at ? Escape.plain(args[at]) : "";
    }

    private void explain(Brokers.Running broker, String question, String first, String second) throws Exception {
        List<String> operations = question.equals("client") ? List.of("explain", "describe") : List.of(question);
        print("broker", Escape.fields(broker.pid(), broker.node()));
        Brokers.ask(broker, operations, first, second).forEach((operation, lines) -> {
            String kind = KINDS.getOrDefault(operation, operation);
            for (String line : lines) print(kind, line);
        });
    }

    private void print(String kind, String line) {
        out.println(kind + "\t" + Escape.ascii(line));
    }
}
