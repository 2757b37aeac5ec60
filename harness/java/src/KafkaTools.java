package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
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

    private static final Map<String, ClassLoader> LOADERS = new HashMap<>();  // by directory of jars

    private static final ByteArrayOutputStream PRINTED = new ByteArrayOutputStream();

    /** Keeps what a tool prints to System.out, to return it to the caller. */
    static final PrintStream OUT = new PrintStream(PRINTED, true, StandardCharsets.UTF_8);

    private KafkaTools() { }

    /** {@code kafka-storage.sh format}: args are the command line that follows {@code format}. */
    static Object format(JsonNode args) {
        String[] command = Stream.concat(Stream.of("format"), texts(args)).toArray(String[]::new);
        return exitCodeAndOutput(() -> {
            throw new Exited(kafka.tools.StorageTool.execute(command, System.out));
        });
    }

    /** args: the class of a command line tool, a directory with more jars or null, and the tool's command line. */
    static Object run(JsonNode args) {
        String[] command = texts(args).skip(2).toArray(String[]::new);
        return exitCodeAndOutput(() -> {
            try { // by its name, since a broker's jars do not have every tool
                Class<?> tool = Class.forName(args.get(0).textValue(), true, loader(args.get(1).textValue()));
                tool.getMethod("main", String[].class).invoke(null, (Object) command);
            } catch (InvocationTargetException e) {
                if (e.getCause() instanceof RuntimeException cause) throw cause;
                throw new IllegalStateException(e.getCause());
            } catch (ReflectiveOperationException | IOException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    private static ClassLoader loader(String directory) throws IOException {
        ClassLoader own = KafkaTools.class.getClassLoader();
        if (directory != null && !LOADERS.containsKey(directory)) {
            List<URL> jars = new ArrayList<>();
            try (DirectoryStream<Path> found = Files.newDirectoryStream(Path.of(directory), "*.jar")) {
                for (Path jar : found) jars.add(jar.toUri().toURL());
            }
            LOADERS.put(directory, new URLClassLoader(jars.toArray(URL[]::new), own));
        }
        return directory == null ? own : LOADERS.get(directory);
    }

    private static Stream<String> texts(JsonNode args) {
        return StreamSupport.stream(args.spliterator(), false).map(JsonNode::textValue);
    }

    private static Object exitCodeAndOutput(Runnable tool) {
        PrintStream err = System.err;
        printed();
        System.setErr(OUT);
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
        return List.of(code, printed());
    }

    /** Returns all that was printed since the last call. */
    private static String printed() {
        OUT.flush();
        String text = PRINTED.toString(StandardCharsets.UTF_8);
        PRINTED.reset();
        return text;
    }

    /** Sets whether Kafka's tools throw Exited instead of ending the JVM. Kafka 4.4 has Exit in another package. */
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
