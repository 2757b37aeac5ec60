package org.quotahost.python;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;

/**
 * The one Python of this JVM. It starts once and stays until the process ends: an interpreter that
 * was ever joined with JPype can't be ended and started again. A failed start is remembered and told again.
 */
public final class Interpreter {
    private static boolean started;
    private static StartException failure;
    private static String executable;

    private Interpreter() {}

    /** Starts Python on the calling thread, or tells why it can't. */
    public static synchronized void start(PythonEnvironment environment) {
        if (failure != null) throw new StartException(failure.getMessage(), failure);
        if (started) {
            sameInterpreter(environment);
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

    /** Runs the host until it is closed. Answers null, or the traceback of what ended it. */
    public static String serve() {
        return run(resource("serve.py"));
    }

    private static void sameInterpreter(PythonEnvironment environment) {
        if (!environment.executable().equals(executable)) {
            throw new StartException("this JVM already runs the Python of " + executable
                    + "; python.executable=" + environment.executable() + " would need a new broker process");
        }
    }

    private static void boot(PythonEnvironment environment) {
        Path library = NativeLibrary.load();
        try {
            said("Python does not start", initialize(environment.libpython(), environment.executable()));
            said("JPype does not start", run(bootstrap(environment, library)));
            ShutdownOrder.keep();
        } finally {
            delete(library); // both have it open by now
        }
    }

    private static void said(String what, String problem) {
        if (problem != null) throw new StartException(what + ": " + problem);
    }

    private static String bootstrap(PythonEnvironment environment, Path library) {
        String path = environment.path().stream().map(Interpreter::literal).collect(Collectors.joining(", ", "[", "]"));
        return resource("bootstrap.py")
                .replace("{path}", path)
                .replace("{executable}", literal(environment.executable()))
                .replace("{library}", literal(library.toString()));
    }

    /** A Python string literal that is plain ASCII, whatever the text. */
    static String literal(String text) {
        return text.codePoints()
                .mapToObj(c -> c >= ' ' && c < 127 && c != '"' && c != '\\' ? Character.toString(c) : String.format("\\U%08x", c))
                .collect(Collectors.joining("", "\"", "\""));
    }

    private static String resource(String name) {
        try (InputStream in = Interpreter.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new StartException("the jar's " + name + " cannot be read: " + e.getMessage(), e);
        }
    }

    private static void delete(Path library) {
        try {
            Files.deleteIfExists(library);
        } catch (IOException e) {
            library.toFile().deleteOnExit();
        }
    }

    private static native String initialize(String libpython, String executable);

    private static native String run(String code);
}
