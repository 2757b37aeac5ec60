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

/**
 * The interpreter that python.executable names, by the real path where a link leads: asked by probe.py and refused if it
 * can't work; its libpython, module path, and quotahost's library by which this JVM takes it in (attach.c).
 *
 * <p>It is asked by running probe.py with it in a process of its own, before anything of it is loaded into the
 * broker. An interpreter that cannot work stops the broker's start with a message that says what to install or to
 * change.
 */
public record PythonEnvironment(String executable, String libpython, String attach, List<String> path) {
    /**
     * How long an interpreter may take to answer, and then Python to start and to read the settings. It is a property
     * of the JVM, not of the broker: Python has to start before any setting of quotahost is read.
     */
    public static final long START_SECONDS = Math.max(1, Long.getLong("quotahost.python.start.seconds", 30));

    /** In bytes: what isn't Python may write without end, into the heap of a broker that serves. */
    private static final int LONGEST_ANSWER = 1 << 20;
    /** In characters, of what an interpreter says that fails. */
    private static final int LONGEST_QUOTE = 1_000;

    /**
     * Asks the interpreter about itself; ConfigException if it says why it cannot work. Whether another release of quotahost
     * fits that may be there in a child, its first call tells (Calls).
     */
    public static PythonEnvironment of(String executable, boolean inChild) {
        return of(inChild ? fixed(executable) : executable, inChild, START_SECONDS);
    }

    /**
     * The executable by the real path of its directory: a link there may lead to another environment later, and a Python that
     * runs must go on with its own. The file itself may be a link out of the environment, to the Python that made it.
     */
    private static String fixed(String executable) {
        try {
            Path file = Path.of(executable);
            return file.getParent() == null ? executable : file.getParent().toRealPath().resolve(file.getFileName()).toString();
        } catch (IOException | InvalidPathException e) { // the locale C has no path with letters beyond ASCII
            return executable; // the probe says what is wrong
        }
    }

    /**
     * Runs something on a thread of its own. In the pool that all share each one that hangs would take a worker away, and a
     * worker that waits for another task does that one itself meanwhile, without an end.
     */
    public static void apart(Runnable task) {
        Thread thread = new Thread(task, "quotahost-probe");
        thread.setDaemon(true);
        thread.start();
    }

    static PythonEnvironment of(String executable, boolean inChild, long seconds) {
        Map<String, String> facts = new HashMap<>();
        List<String> path = new ArrayList<>();
        for (String line : probe(executable, inChild, seconds).split("\n")) {
            String[] fact = line.strip().split("=", 2);
            if (fact.length == 2 && fact[0].equals("path")) path.add(fact[1]);
            else if (fact.length == 2) facts.putIfAbsent(fact[0], fact[1]);
        }
        if (!facts.containsKey("version")) throw wrong(executable, " is no Python: it answered nothing");
        String problem = facts.get("problem"); // the first, and behind a tab what to do
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

    /** What probe.py prints. */
    private static String probe(String executable, boolean inChild, long seconds) {
        Properties built = Resources.versions();
        // Isolated: a broker may start in any directory, and must not run what lies there as a module of Python's.
        var command = new ProcessBuilder(executable, "-I", "-c", Resources.text(Interpreter.class, "probe.py"),
                built.getProperty("quotahost"), built.getProperty("jpype"), inChild ? "child" : "broker");
        try {
            Process process = command.redirectErrorStream(true).start();
            process.getOutputStream().close();
            // The output ends when the last process closes it that has it open; a wrapper may have left one behind.
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
