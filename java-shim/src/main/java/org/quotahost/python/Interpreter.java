package org.quotahost.python;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.stream.Collectors;
import org.quotahost.internals.ShutdownOrder;

/**
 * The one Python interpreter of this JVM.
 *
 * <p>It starts once and stays until the process ends, since an interpreter in which JPype runs cannot be ended and
 * started again. For the same reason a start that has failed is not tried again, and later starts fail with the same
 * message. The native methods are in attach.c.
 */
public final class Interpreter {
    private static boolean started;
    private static StartException failure;
    private static String executable;

    private Interpreter() {}

    /**
     * Starts Python and JPype on the calling thread, unless they run already.
     *
     * @throws StartException if they cannot start, or if another interpreter runs already
     */
    public static synchronized void start(PythonEnvironment environment) {
        if (failure != null) throw new StartException(failure.getMessage(), failure);
        if (started) {
            requireSameInterpreter(environment);
            return;
        }
        try {
            boot(environment);
            started = true;
            executable = environment.executable();
        } catch (StartException e) {
            failure = e;
            throw e;
        }
    }

    /**
     * Runs the Python host on the calling thread until it is closed. Answers null, or the traceback of the error that
     * ended it.
     */
    public static String serve() {
        return run(resource("serve.py"));
    }

    private static void requireSameInterpreter(PythonEnvironment environment) {
        if (!environment.executable().equals(executable)) {
            throw new StartException("this JVM already runs the Python of " + executable
                    + "; python.executable=" + environment.executable() + " would need a new broker process");
        }
    }

    private static void boot(PythonEnvironment environment) {
        Path library = NativeLibrary.load();
        try {
            requireNoProblem("Python does not start", initialize(environment.libpython(), environment.executable()));
            requireNoProblem("JPype does not start", run(bootstrap(environment, library)));
            ShutdownOrder.keep();
        } finally {
            NativeLibrary.remove(library); // the JVM and JPype both have it open by now
        }
    }

    private static void requireNoProblem(String what, String problem) {
        if (problem != null) throw new StartException(what + ": " + problem);
    }

    private static String bootstrap(PythonEnvironment environment, Path library) {
        String path = environment.path().stream().map(Interpreter::literal).collect(Collectors.joining(", ", "[", "]"));
        return resource("bootstrap.py")
                .replace("{path}", path)
                .replace("{executable}", literal(environment.executable()))
                .replace("{library}", literal(library.toString()));
    }

    /** A text as a Python string literal in plain ASCII. */
    static String literal(String text) {
        return text.codePoints()
                .mapToObj(c -> c >= ' ' && c < 127 && c != '"' && c != '\\' ? Character.toString(c)
                        : String.format("\\U%08x", c))
                .collect(Collectors.joining("", "\"", "\""));
    }

    private static String resource(String name) {
        try (InputStream in = Interpreter.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new StartException("the jar's " + name + " cannot be read: " + e.getMessage(), e);
        }
    }

    /** Loads and starts libpython as this executable would start it. Answers null, or what went wrong. */
    private static native String initialize(String libpython, String executable);

    /** Runs Python code, which leaves its error in __main__.quotahost_error. Answers null, or that error. */
    private static native String run(String code);
}
