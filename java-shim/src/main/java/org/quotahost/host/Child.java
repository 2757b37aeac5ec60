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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A life of the Python host in a process of its own: its frames, its threads, what it prints, and its end.
 *
 * <p>Calls come by its standard output and answers go to its standard input, as frames: a length (4 bytes), a number by which
 * the answer finds its call (8 bytes; 0 where nobody waits), and a message (Calls). One thread reads the frames and makes
 * the calls that nobody waits for; the others, which may take long, have threads of their own, as many as wait for them in
 * Python: a process that does not read stops nobody but itself. What is no frame ends it. What native code of it prints, and Python
 * before it knows this JVM, goes to the broker's log by its standard error.
 */
final class Child extends Life {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.python");
    private static final int LONGEST_LINE = 4_096;
    /** After so many reads of what a child has printed the thread looks after the child again: together more than a pipe holds. */
    private static final int MOST_READS = 64;
    private static final int LINES_PER_MINUTE = 100;
    /** Between the end of the process and that of its calls, which this JVM learns in either order. */
    private static final long LAST_MS = 1_000;
    /** A process that was killed so long ago counts as ended. */
    private static final long KILLED_MS = 4_000;
    private static final int SIGKILL = 9;
    private static final Map<Integer, String> SIGNALS = Map.of(4, "SIGILL", 6, "SIGABRT", 7, "SIGBUS", 8, "SIGFPE",
            9, "SIGKILL", 11, "SIGSEGV", 15, "SIGTERM");
    private static final ThreadPoolExecutor CALLS = new ThreadPoolExecutor(0, Integer.MAX_VALUE, 10, TimeUnit.SECONDS,
            new SynchronousQueue<>(), work -> daemon(work, "quotahost-call"));

    private volatile Process process;
    private Thread reader;
    private InputStream errors;
    private DataOutputStream out;
    /** Calls that nobody waits for, until it has its turn. */
    private final List<Calls.Request> deferred = new ArrayList<>();
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final LineLimit lines = new LineLimit(LINES_PER_MINUTE);
    private volatile String problem;
    /** What it has printed last. */
    private String lastLine = "";
    /** By System.nanoTime; 0 if it was not. */
    private volatile long killedAt;

    Child(PythonHost host, BrokerConfigs config, CompletableFuture<PythonEnvironment> environment, boolean waits) {
        super(host, config, environment, waits);
    }

    /** The process ends with the calling thread, or when this JVM ends (prctl in child.py). */
    @Override
    void begin() throws IOException {
        if (process != null) return; // an upgrade is begun at each look of the host thread
        since = System.nanoTime();
        PythonEnvironment python = environment.join();
        String code = Resources.text(Interpreter.class, "child.py")
                .replace("{path}", Json.text(String.join("\n", python.path())))
                .replace("{parent}", Long.toString(ProcessHandle.current().pid()));
        // Isolated: it must not run what lies in the working directory, nor start as PYTHON* variables say.
        process = new ProcessBuilder(python.executable(), "-I", "-c", code).start();
        errors = process.getErrorStream();
        out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1 << 16));
        reader = daemon(this::read, "quotahost-child");
        reader.start();
    }

    static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    @Override
    public String toString() {
        return "the process " + process.pid();
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
        } catch (IOException | RuntimeException | Error e) { // also a full heap or stack, by what it sent
            kill("what it sent cannot be read: " + Calls.problem(e));
        }
    }

    private void take(long number, Calls.Request request) {
        if (request.waits()) CALLS.execute(() -> answer(number, calls.answer(request)));
        else if (!defers(request)) calls.answer(request);
    }

    /** Keeps what nobody waits for until the process has its turn: another one still serves. */
    private synchronized boolean defers(Calls.Request request) {
        return waits() && deferred.add(request);
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
            LOG.debug("{} does not read any more", this, e); // its end says more
        }
    }

    // ---- what it prints --------------------------------------------------------------------------------------

    /** Writes to the log what has come by standard error. It does not wait: a process that outlives this one may have it open. */
    private void log() {
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

    /** What it called last goes before all that the next one calls; but a process that it has started may have its output open. */
    @Override
    boolean ended(long waitMs) throws InterruptedException {
        boolean callsNoMore = !reader.isAlive(); // as it ends, or as a plugin has closed all files
        // One that hangs in a disk outlives SIGKILL, and where the heap is full Java's own thread may end that would tell of its end.
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
        if (process != null) process.toHandle().destroyForcibly(); // Process's own would wait for who writes to the process
    }

    /** It gets no turn. */
    void discard(String why) {
        end(why);
        kill(why);
        if (process != null) process.onExit().thenRun(this::cause);
    }

    @Override
    String cause() {
        log();
        if (line.size() > 0) endLine();
        // Not here: if a process that it has started holds a pipe open, whoever writes to it may wait.
        CALLS.execute(() -> {
            try (var first = errors; var second = out) {
                LOG.debug("{} has ended", this);
            } catch (IOException e) {
                LOG.debug("A pipe of {} cannot be closed", this, e);
            }
        });
        int code = process.isAlive() ? 128 + SIGKILL : process.exitValue(); // Java has 128 + the signal
        String signal = code > 128 ? SIGNALS.getOrDefault(code - 128, "signal " + (code - 128)) : null;
        String how = this + " ended " + (signal != null ? "by " + signal : "with exit code " + code);
        // One that cannot even import quotahost can tell nothing but what Python itself prints.
        if (problem == null && !starting.isDone() && !lastLine.isEmpty()) problem = lastLine;
        if (!starting.isDone()) how = BrokerConfigs.PREFIX + "python.executable=" + environment.join().executable() + ": " + how;
        return problem == null ? how : how + ": " + problem;
    }
}
