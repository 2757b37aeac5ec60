package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

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

    /** {@code kafka-storage.sh format}: args are the command line that follows {@code format}. */
    static Object format(JsonNode args) {
        String[] command = Stream.concat(Stream.of("format"), texts(args)).toArray(String[]::new);
        return exitCodeAndOutput(() -> {
            throw new Exited(kafka.tools.StorageTool.execute(command, System.out));
        });
    }

    /** {@code kafka-configs.sh}: args are the command line. */
    static Object configs(JsonNode args) {
        String[] command = texts(args).toArray(String[]::new);
        return exitCodeAndOutput(() -> {
            try { // by its name: a broker's jars of Kafka 4.4 don't have it
                Class.forName("kafka.admin.ConfigCommand").getMethod("main", String[].class).invoke(null, (Object) command);
            } catch (InvocationTargetException e) {
                if (e.getCause() instanceof RuntimeException cause) throw cause;
                throw new IllegalStateException(e.getCause());
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    private static Stream<String> texts(JsonNode args) {
        return StreamSupport.stream(args.spliterator(), false).map(JsonNode::textValue);
    }

    private static Object exitCodeAndOutput(Runnable tool) {
        PrintStream err = System.err;
        Captured.take();
        System.setErr(Captured.OUT);
        onExit(true);
        int code = 0;
        try {
            tool.run();
        } catch (Exited e) {
            code = e.code;
        } finally {
            onExit(false);
            System.setErr(err);
        }
        return List.of(code, Captured.take());
    }

    /** Whether Kafka's tools throw Exited instead of ending the JVM. Kafka 4.4 has Exit at another place. */
    private static void onExit(boolean thrown) {
        try {
            Class<?> exit = exit();
            if (!thrown) {
                exit.getMethod("resetExitProcedure").invoke(null);
                return;
            }
            Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
            Object exited = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (self, method, args) -> {
                throw new Exited((Integer) args[0]);
            });
            exit.getMethod("setExitProcedure", procedure).invoke(null, exited);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Class<?> exit() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        }
    }
}
