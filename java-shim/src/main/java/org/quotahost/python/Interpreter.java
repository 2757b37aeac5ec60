package org.quotahost.python;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.internals.ShutdownOrder;
import org.quotahost.util.Json;
import org.quotahost.util.Resources;

/**
 * The one Python interpreter of this JVM: it starts on a thread of its own, so that no plugin can handle signals, and stays
 * until the process ends, since an interpreter in which JPype runs cannot be started again; attach.c has its native methods.
 */
public final class Interpreter {
    /** More than Java's default, since Python may recurse deeply in C (regular expressions, pydantic). */
    public static final long STACK_BYTES = 16L << 20;
    /** The threading module takes the thread that imports it first for the main thread; libraries ask it before they take signals. */
    private static final String MAIN_THREAD = """
            try:
                import threading
            except ImportError:
                pass
            quotahost_error = ''
            """;
    private static boolean started;

    private Interpreter() {}

    /** Starts Python and JPype, unless they already run. Throws ConfigException if they cannot start. */
    public static synchronized void start(PythonEnvironment environment) {
        if (!started) boot(environment);
        started = true;
    }

    /** Runs the Python host on the calling thread until it ends. Returns null, or the traceback of its error. */
    public static String serve() {
        return run(Resources.text(Interpreter.class, "serve.py"));
    }

    private static void boot(PythonEnvironment environment) {
        try {
            System.load(environment.attach());
        } catch (UnsatisfiedLinkError e) {
            throw new ConfigException("the attach library " + environment.attach() + " does not load: " + e.getMessage());
        }
        requireNoProblem("Python does not start", startApart(environment));
        // A JSON text is also a Python text, except for letters beyond U+FFFF, which no path contains.
        requireNoProblem("JPype does not start", run(Resources.text(Interpreter.class, "bootstrap.py")
                .replace("{path}", Json.text(String.join("\n", environment.path())))
                .replace("{executable}", Json.text(environment.executable()))
                .replace("{library}", Json.text(environment.attach()))));
        ShutdownOrder.keep();
    }

    /**
     * Starts Python on a thread of its own, which does nothing else and never ends. Code on the thread that started Python may
     * handle signals, and these are the JVM's: a plugin that handles SIGTERM would keep the broker from stopping, and one that
     * handles SIGPIPE would end the broker when the next client disconnects.
     */
    private static String startApart(PythonEnvironment environment) {
        return CompletableFuture.supplyAsync(() -> {
            String problem = initialize(environment.libpython(), environment.executable());
            return problem != null ? problem : run(MAIN_THREAD);
        }, Interpreter::runAndStay).join();
    }

    private static void runAndStay(Runnable start) {
        Thread thread = new Thread(null, () -> {
            start.run();
            while (true) LockSupport.park();
        }, "quotahost-python", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
    }

    private static void requireNoProblem(String what, String problem) {
        if (problem != null) throw new ConfigException(what + ": " + problem);
    }

    /** Loads and starts libpython as this executable would start it. Returns null, or the error. */
    private static native String initialize(String libpython, String executable);

    /** Runs Python code, which leaves its error in __main__.quotahost_error. Returns null, or that error. */
    private static native String run(String code);
}
