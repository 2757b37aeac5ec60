package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.utils.Exit;

/** Runs Kafka's own command line tools in this JVM, which saves each of them the start of its own JVM. */
final class KafkaTools {

    /** Thrown instead of ending the JVM. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int code;

        Exited(int code) {
            this.code = code;
        }
    }

    private KafkaTools() { }

    /** {@code kafka-storage.sh format}: args are cluster id and properties file. */
    static Object format(JsonNode args) {
        String[] command = {"format", "--cluster-id", args.get(0).textValue(), "--config", args.get(1).textValue()};
        return exitCodeAndOutput(() -> Exit.exit(kafka.tools.StorageTool.execute(command, System.out)));
    }

    /** {@code kafka-configs.sh}: args are the command line. */
    static Object configs(JsonNode args) {
        String[] command = StreamSupport.stream(args.spliterator(), false).map(JsonNode::textValue)
            .toArray(String[]::new);
        return exitCodeAndOutput(() -> kafka.admin.ConfigCommand.main(command));
    }

    private static Object exitCodeAndOutput(Runnable tool) {
        PrintStream err = System.err;
        Captured.take();
        System.setErr(Captured.OUT);
        Exit.setExitProcedure((code, message) -> {
            throw new Exited(code);
        });
        int code = 0;
        try {
            tool.run();
        } catch (Exited e) {
            code = e.code;
        } finally {
            Exit.resetExitProcedure();
            System.setErr(err);
        }
        return List.of(code, Captured.take());
    }
}
