package org.quotahost.python;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Resources;
import org.quotahost.util.Schedule;

/**
 * The interpreter that python.executable names, by the real path of its directory: its libpython, its module path, and
 * quotahost's library that loads it into this JVM (attach.c). probe.py asks it, and an interpreter that cannot work is refused.
 *
 * <p>The interpreter runs probe.py in a process of its own, before anything of it is loaded into the broker. An interpreter
 * that cannot work stops the broker's start with a message that says what to install or to change.
 */
public record PythonEnvironment(String executable, String libpython, String attach, List<String> path) {
    /**
     * The seconds that an interpreter may take to answer, and Python to start and to read the settings. This is a property of
     * the JVM, not of the broker, since Python must start before any setting of quotahost is read.
     */
    public static final long START_SECONDS = Math.max(1, Long.getLong("quotahost.python.start.seconds", 30));

    /** In bytes. A program that is not Python may write without end into the heap of a running broker. */
    private static final int LONGEST_ANSWER = 1 << 20;
    /** In characters. The error quotes at most this much, from the end of the output of an interpreter that fails. */
    private static final int LONGEST_QUOTE = 1_000;

    /**
     * Asks the interpreter about itself. Throws ConfigException if the interpreter says why it cannot work. In a child, another
     * release of quotahost may be installed; the child's first call shows whether it fits (Calls).
     */
    public static PythonEnvironment of(String executable, boolean inChild) {
        return of(inChild ? fixed(executable) : executable, inChild, START_SECONDS);
    }

    /**
     * Resolves the links of the executable's directory: a link may later lead to another environment, and a running Python must
     * keep its own. The file itself may be a link out of the environment, to the Python that made the environment.
     */
    private static String fixed(String executable) {
        try {
            Path file = Path.of(executable);
            return file.getParent() == null ? executable : file.getParent().toRealPath().resolve(file.getFileName()).toString();
        } catch (IOException | InvalidPathException e) { // the locale C has no path with letters beyond ASCII
            return executable; // the probe reports the error
        }
    }

    /**
     * Runs a task on a thread of its own. In the common pool each hanging task would take a worker away, and a worker that
     * waits for another task may run that task itself, without a time limit.
     */
    public static void apart(Runnable task) {
        Schedule.daemon(task, "quotahost-probe").start();
    }

    static PythonEnvironment of(String executable, boolean inChild, long seconds) {
        Map<String, String> facts = new HashMap<>();
        List<String> path = new ArrayList<>();
        for (String line : probe(executable, inChild, seconds).split("\n")) {
            String[] fact = line.strip().split("=", 2);
            if (fact.length == 2 && fact[0].equals("path")) path.add(fact[1]);
            else if (fact.length == 2) facts.putIfAbsent(fact[0], fact[1]);
        }
        if (!facts.containsKey("version")) throw wrong(executable, " is not a Python interpreter: it printed nothing");
        String problem = facts.get("problem"); // the first problem, a tab, and the remedy
        if (problem != null) throw wrong(executable, ": " + problem.replace("\t", "; "));
        return new PythonEnvironment(facts.get("executable"), facts.get("libpython"), facts.get("attach"), path);
    }

    private static ConfigException wrong(String executable, String problem) {
        return new ConfigException(BrokerConfigs.PREFIX + "python.executable=" + executable + problem);
    }

    private static String read(InputStream answer) {
        try {
            return new String(answer.readNBytes(LONGEST_ANSWER), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the output of probe.py. */
    private static String probe(String executable, boolean inChild, long seconds) {
        Properties built = Resources.versions();
        // -I isolates Python: a broker may start in any directory, and must not run a file there as a module of Python's.
        var command = new ProcessBuilder(executable, "-I", "-c", Resources.text(Interpreter.class, "probe.py"),
                built.getProperty("quotahost"), built.getProperty("jpype"), inChild ? "child" : "broker");
        try {
            Process process = command.redirectErrorStream(true).start();
            process.getOutputStream().close();
            // The output ends when the last process that has it open closes it; a wrapper may have left such a process running.
            var answer = CompletableFuture.supplyAsync(() -> read(process.getInputStream()), PythonEnvironment::apart);
            try {
                String text = answer.get(seconds, TimeUnit.SECONDS).strip();
                if (!process.waitFor(seconds, TimeUnit.SECONDS)) throw new TimeoutException();
                if (process.exitValue() == 0) return text;
                throw wrong(executable, " is no working Python 3.11+, it ended with exit code " + process.exitValue() + ": "
                        + text.substring(Math.max(0, text.length() - LONGEST_QUOTE)));
            } catch (ExecutionException | TimeoutException e) {
                process.destroyForcibly();
                throw wrong(executable, " did not answer within " + seconds + " s");
            }
        } catch (IOException e) {
            throw wrong(executable, " could not be run (" + e.getMessage() + "); give the full path of the interpreter"
                    + " that has quotahost, such as /opt/quotahost/bin/python3");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw wrong(executable, ": interrupted while it was asked");
        }
    }
}
