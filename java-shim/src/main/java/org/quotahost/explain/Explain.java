package org.quotahost.explain;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.quotahost.util.Escape;

/**
 * The Java end of {@code quotahost explain}: {@code java -cp quotahost.jar org.quotahost.explain.Explain BROKER USER CLIENT}.
 *
 * <p>BROKER is a process id, {@code broker:N}, or empty for the only one there is. USER and CLIENT are escaped
 * (Escape), as a locale may garble arguments. On standard output, tab-separated and escaped, each line names its
 * kind first: broker (pid, node id), state (name, value), quota (Description's line), or error (what kind, details). Exit
 * code 0, or 2 after an error. Needs a JDK's module jdk.attach, and nothing of Kafka's.
 */
public final class Explain {
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);

    private Explain() {}

    public static void main(String[] args) {
        System.exit(new Explain().run(args));
    }

    private int run(String[] args) {
        try {
            if (args.length != 3) throw new ExplainException("failed", "three arguments are needed: BROKER USER CLIENT");
            if (ModuleLayer.boot().findModule("jdk.attach").isEmpty()) throw new ExplainException("no-jdk", System.getProperty("java.home"));
            explain(Brokers.one(args[0]), Escape.plain(args[1]), Escape.plain(args[2]));
            return 0;
        } catch (ExplainException e) {
            print("error", Escape.fields(e.kind(), e.getMessage()));
        } catch (Exception e) {
            print("error", Escape.fields("failed", e));
        }
        return 2;
    }

    private void explain(Brokers.Running broker, String principal, String clientId) throws Exception {
        print("broker", Escape.fields(broker.pid(), broker.node()));
        Brokers.ask(broker, List.of("explain", "describe"), principal, clientId).forEach((operation, lines) -> {
            for (String line : lines) print(operation.equals("explain") ? "state" : "quota", line);
        });
    }

    private void print(String kind, String line) {
        out.println(kind + "\t" + Escape.ascii(line));
    }
}
