package org.quotahost.host;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Json;
import org.quotahost.util.LineLimit;
import org.quotahost.util.Resources;
import org.quotahost.util.Schedule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A life of the Python host in a process of its own: its frames, its threads, its output, and its end.
 *
 * <p>Calls come from the process's standard output and answers go to its standard input, as frames: a length (4 bytes), a
 * number that links the answer to its call (8 bytes; 0 if no caller waits), and a message (Calls). One thread reads the frames
 * and runs the calls without a waiting caller. The other calls may take long, so each has its own thread, as many as wait in
 * Python: a process that does not read blocks only itself. Invalid frames end the process. Output of native code, and of Python
 * before it knows this JVM, comes by standard error and goes to the broker's log.
 */
final class Child extends Life {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.python");
    private static final int LONGEST_LINE = 4_096;
    /** After this many reads of a child's output, more bytes than a pipe holds, the thread looks after the child again. */
    private static final int MOST_READS = 64;
    private static final int LINES_PER_MINUTE = 100;
    /** Further calls of a process that waits for its turn are dropped: a plugin that counts in a loop must not fill the heap. */
    static final int MOST_DEFERRED = 10_000;
    /** The wait between the end of the process and the end of its calls, which this JVM learns in either order. */
    private static final long LAST_MS = 1_000;
    /** A process counts as ended when it was killed this long ago. */
    private static final long KILLED_MS = 4_000;
    private static final int SIGKILL = 9;
    private static final Map<Integer, String> SIGNALS = Map.of(4, "SIGILL", 6, "SIGABRT", 7, "SIGBUS", 8, "SIGFPE",
            9, "SIGKILL", 11, "SIGSEGV", 15, "SIGTERM");
    private static final ThreadPoolExecutor CALLS = new ThreadPoolExecutor(0, Integer.MAX_VALUE, 10, TimeUnit.SECONDS,
            new SynchronousQueue<>(), work -> Schedule.daemon(work, "quotahost-call"));

    private volatile Process process;
    private Thread reader;
    private DataOutputStream out;
    /** Calls without a waiting caller, kept until this process has its turn. */
    private final List<Calls.Request> deferred = new ArrayList<>();
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final LineLimit lines = new LineLimit(LINES_PER_MINUTE);
    private volatile String problem;
    /** The last line that the process printed. */
    private String lastLine = "";
    /** By System.nanoTime; 0 if the process was not killed. */
    private volatile long killedAt;

    Child(PythonHost host, BrokerConfigs config, CompletableFuture<PythonEnvironment> environment, boolean waits) {
        super(host, config, environment, waits);
    }

    /** Starts the process, which ends when the calling thread or this JVM ends (prctl in child.py). */
    @Override
    void begin() throws IOException {
        if (process != null) return; // the host thread begins an upgrade at each look
        since = System.nanoTime();
        PythonEnvironment python = environment.join();
        String code = Resources.text(Interpreter.class, "child.py")
                .replace("{path}", Json.text(String.join("\n", python.path())))
                .replace("{parent}", Long.toString(ProcessHandle.current().pid()));
        // -I isolates Python: it must not run files of the working directory, nor obey PYTHON* variables.
        process = new ProcessBuilder(python.executable(), "-I", "-c", code).start();
        out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1 << 16));
        reader = Schedule.daemon(this::read, "quotahost-child");
        reader.start();
    }

    @Override
    public String toString() {
        return process == null ? "a process that did not start" : "the process " + process.pid();
    }

    // ---- calls -----------------------------------------------------------------------------------------------

    private void read() {
        try (var in = new DataInputStream(new BufferedInputStream(process.getInputStream(), 1 << 16))) {
            for (int first = in.read(); first >= 0; first = in.read()) {
                int length = first << 24 | in.readUnsignedByte() << 16 | in.readUnsignedShort();
                long number = in.readLong();
                if (length < 0 || length > Calls.MOST) throw new IllegalArgumentException("it sent a frame of " + length + " bytes");
                byte[] message = new byte[length];
                in.readFully(message);
                take(number, Calls.read(message));
            }
        } catch (EOFException e) {
            kill("its last frame was cut");
        } catch (IOException | RuntimeException | Error e) { // also a full heap or stack, caused by the frame
            kill("what it sent cannot be read: " + Calls.problem(e));
        }
    }

    private void take(long number, Calls.Request request) {
        if (request.waits()) CALLS.execute(() -> answer(number, calls.answer(request)));
        else if (!defers(request)) calls.answer(request);
    }

    /** Keeps a call without a waiting caller until this process has its turn, since another process still serves. */
    private synchronized boolean defers(Calls.Request request) {
        return waits() && (deferred.size() >= MOST_DEFERRED || deferred.add(request));
    }

    @Override
    synchronized void takeTurn() {
        deferred.forEach(calls::answer);
        deferred.clear();
        super.takeTurn();
    }

    private void answer(long number, byte[] message) {
        if (number == 0) return;
        byte[] fits = message.length <= Calls.MOST ? message : Calls.TOO_LARGE;
        try {
            synchronized (out) {
                out.writeInt(fits.length);
                out.writeLong(number);
                out.write(fits);
                out.flush();
            }
        } catch (IOException e) {
            LOG.debug("{} does not read any more", this, e); // the end of the process tells more
        }
    }

    // ---- its output ------------------------------------------------------------------------------------------

    /** Logs the standard error so far, without waiting, since a process that outlives this one may still have the pipe open. */
    private void log() {
        InputStream errors = process.getErrorStream();
        try {
            for (int reads = 0, some; reads < MOST_READS && (some = errors.available()) > 0; reads++) {
                for (byte next : errors.readNBytes(Math.min(some, LONGEST_LINE))) {
                    if (next == '\n' || line.size() == LONGEST_LINE) endLine();
                    if (next != '\n') line.write(next);
                }
            }
        } catch (IOException e) {
            LOG.debug("No more can be read of what {} prints", this, e);
        }
    }

    private void endLine() {
        String text = line.toString(StandardCharsets.UTF_8).replaceAll("\\p{Cntrl}", "?");
        line.reset();
        if (!text.isBlank()) lastLine = text;
        long before = text.isBlank() ? LineLimit.NO : lines.pass();
        if (before != LineLimit.NO) LOG.info("{}{}", text, before == 0 ? "" : " (" + before + " lines were left out before)");
    }

    // ---- its end ---------------------------------------------------------------------------------------------

    /** The child's last calls must precede the next life's. But a process of the child's may keep the pipe open, so the wait ends. */
    @Override
    boolean ended(long waitMs) throws InterruptedException {
        boolean callsNoMore = !reader.isAlive(); // when the process ends, or when a plugin has closed all files
        // A process that hangs in disk I/O survives SIGKILL. If the heap is full, Java's thread that reports its end may have died.
        boolean ended = process.waitFor(callsNoMore ? Math.max(waitMs, LAST_MS) : waitMs, TimeUnit.MILLISECONDS)
                || killedAt != 0 && System.nanoTime() - killedAt > TimeUnit.MILLISECONDS.toNanos(KILLED_MS);
        log();
        if (ended && !waits()) reader.join(LAST_MS);
        if (!ended && callsNoMore) kill("it has closed the pipe of its calls");
        return ended;
    }

    @Override
    void kill(String why) {
        if (problem == null) problem = why;
        if (killedAt == 0) killedAt = System.nanoTime() | 1;
        if (process != null) process.toHandle().destroyForcibly(); // Process.destroyForcibly() would wait for writers
    }

    /** Ends a process that gets no turn. */
    void discard(String why) {
        end(why);
        kill(why);
        if (process != null) process.onExit().thenRun(this::cause);
    }

    @Override
    String cause() {
        log();
        if (line.size() > 0) endLine();
        // On another thread: if a process that the child started keeps a pipe open, a thread that writes to the pipe may wait.
        CALLS.execute(() -> {
            try (var first = process.getErrorStream(); var second = out) {
                LOG.debug("{} has ended", this);
            } catch (IOException e) {
                LOG.debug("A pipe of {} cannot be closed", this, e);
            }
        });
        int code = process.isAlive() ? 128 + SIGKILL : process.exitValue(); // Java reports 128 + the signal
        String signal = code > 128 ? SIGNALS.getOrDefault(code - 128, "signal " + (code - 128)) : null;
        String how = this + " ended " + (signal != null ? "by " + signal : "with exit code " + code);
        // A process that cannot import quotahost cannot report anything except what Python itself prints.
        if (problem == null && !starting.isDone() && !lastLine.isEmpty()) problem = lastLine;
        if (!starting.isDone()) how = BrokerConfigs.PREFIX + "python.executable=" + environment.join().executable() + ": " + how;
        return problem == null ? how : how + ": " + problem;
    }
}
