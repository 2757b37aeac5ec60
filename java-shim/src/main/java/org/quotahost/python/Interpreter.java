package org.quotahost.python;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.internals.ShutdownOrder;
import org.quotahost.util.Json;
import org.quotahost.util.Resources;

/**
 * The one Python interpreter of this JVM, started on a thread of its own, so that no plugin can take a signal. It
 * stays until the process ends, since one in which JPype runs cannot be started again; attach.c has its native methods.
 */
public final class Interpreter {
    /** More than Java's default, since Python may recurse deeply in C (regular expressions, pydantic). */
    public static final long STACK_BYTES = 16L << 20;
    /** For this module Python's main thread is the one that imports it; libraries ask it before they take a signal. */
    private static final String MAIN_THREAD = """
            try:
                import threading
            except ImportError:
                pass
            quotahost_error = ''
            """;
    private static boolean started;

    private Interpreter() {}

    /** Starts Python and JPype on the calling thread, unless they run already; ConfigException if they can't start. */
    public static synchronized void start(PythonEnvironment environment) {
        if (!started) boot(environment);
        started = true;
    }

    /** Runs the Python host on the calling thread until it ends. Answers null, or the traceback of its error. */
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
        // A text in JSON is one in Python, too, but for letters beyond U+FFFF, which no path has.
        requireNoProblem("JPype does not start", run(Resources.text(Interpreter.class, "bootstrap.py")
                .replace("{path}", Json.text(String.join("\n", environment.path())))
                .replace("{executable}", Json.text(environment.executable()))
                .replace("{library}", Json.text(environment.attach()))));
        ShutdownOrder.keep();
    }

    /**
     * Starts Python on a thread of its own, which does nothing else and never ends. Code that runs on the thread that has
     * started Python may take signals, and these are the JVM's: a plugin that took SIGTERM would keep the broker from stopping,
     * and one that took SIGPIPE would end it with the next client that leaves.
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

    /** Loads and starts libpython as this executable would start it. Answers null, or what went wrong. */
    private static native String initialize(String libpython, String executable);

    /** Runs Python code, which leaves its error in __main__.quotahost_error. Answers null, or that error. */
    private static native String run(String code);
}
