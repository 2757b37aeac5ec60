package org.quotahost.explain;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.quotahost.util.Escape;

/**
 * The Java half of {@code quotahost explain}: asks a running broker of this machine which quotas one client has and
 * why.
 *
 * <p>It is called as {@code java -cp quotahost.jar org.quotahost.explain.Explain BROKER USER CLIENT}. BROKER is a
 * process id, {@code broker:N} (a node id), or empty for the only broker there is. USER and CLIENT are escaped
 * (Escape), since a locale may garble arguments.
 *
 * <p>It writes tab-separated, escaped lines to standard output. The first field of each is its kind, the others are:
 * of broker, pid and node id; of state, name and value; of quota, the fields of Description; of error, its kind
 * (ExplainException) and details. The exit code is 0, or 2 after an error. It needs the module jdk.attach of a JDK,
 * and no class of Kafka's.
 */
public final class Explain {
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);

    private Explain() {}

    public static void main(String[] args) {
        System.exit(new Explain().run(args));
    }

    private int run(String[] args) {
        try {
            if (args.length != 3) {
                throw new ExplainException("failed", "three arguments are needed: BROKER USER CLIENT");
            }
            if (ModuleLayer.boot().findModule("jdk.attach").isEmpty()) {
                throw new ExplainException("no-jdk", System.getProperty("java.home"));
            }
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
