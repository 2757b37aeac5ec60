package org.quotahost.explain;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.quotahost.util.Escape;

/**
 * The Java half of {@code quotahost explain}: asks a running broker of this machine about a client, or its volumes.
 *
 * <p>It is called as {@code java -cp quotahost.jar org.quotahost.explain.Explain BROKER QUESTION [ARGUMENT...]}. BROKER
 * is a process id, {@code broker:N} (a node id), or empty for the only broker there is. The questions are {@code client
 * USER CLIENT}, {@code uses MOST}, {@code volumes}, and {@code retention TOPIC,TOPIC...}. Arguments are escaped (Escape), since a locale
 * may garble them. {@code watch MOST} stays: for each line of standard input it answers with the broker, its state, and
 * its uses, and ends the answer with a line {@code end}; it ends with standard input, and with the program that started it.
 *
 * <p>It writes tab-separated, escaped lines to standard output. The first field of each is its kind, the others are:
 * of broker, pid and node id; of state, name and value; of quota, the fields of Description; of uses, those of ClientUse; of volumes, those of
 * VolumeState; of retention, those of VolumeState; of error, its kind (ExplainException) and details. The exit code is
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
        try (Brokers.Connection connection = new Brokers.Connection(broker)) {
            if (question.equals("watch")) {
                watch(connection, broker, first);
                return;
            }
            List<String> operations = question.equals("client") ? List.of("explain", "describe") : List.of(question);
            answer(connection, broker, operations, first, second);
        }
    }

    private void watch(Brokers.Connection connection, Brokers.Running broker, String most) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        while (in.readLine() != null) {
            answer(connection, broker, List.of("explain"), "", "");
            for (String line : connection.ask("uses", most, "")) print("uses", line);
            out.println("end");
        }
    }

    /** Asks everything before it prints anything: after half an answer an error's line would be read as a part of it. */
    private void answer(Brokers.Connection connection, Brokers.Running broker, List<String> operations, String first,
            String second) throws Exception {
        List<String[]> answers = new ArrayList<>();
        for (String operation : operations) answers.add(connection.ask(operation, first, second));
        print("broker", Escape.fields(broker.pid(), broker.node()));
        for (int i = 0; i < answers.size(); i++) {
            String operation = operations.get(i);
            for (String line : answers.get(i)) print(KINDS.getOrDefault(operation, operation), line);
        }
    }

    private void print(String kind, String line) {
        out.println(kind + "\t" + Escape.ascii(line));
    }
}
