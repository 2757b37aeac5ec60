package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.quotahost.fence.Fence;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.inbox.Inboxes;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;

/** A process in Python's place, played by a shell: its frames, its end, its remains, and the start of the next one. */
class ChildTest {
    private final PythonHost host = new PythonHost(new BrokerConfigs(Map.of(), Map.of("node.id", "1")));
    private Map<String, String> properties = Map.of();

    @TempDir
    Path folder;

    private Child start(String script) throws Exception {
        return start(script, false);
    }

    private Child start(String script, boolean waits) throws Exception {
        Path file = folder.resolve("python");
        if (!Files.exists(file)) {
            Files.writeString(file, "#!/bin/sh\n" + script + "\n");
            assertTrue(file.toFile().setExecutable(true));
        }
        var environment = new PythonEnvironment(file.toString(), "", "", List.of("/a"));
        var config = new BrokerConfigs(properties, Map.of());
        Child child = new Child(host, config, CompletableFuture.completedFuture(environment), waits);
        child.begin();
        return child;
    }

    private static String end(Child child) throws Exception {
        for (int i = 0; i < 400 && !child.ended(50); i++) assertTrue(child.seconds() < 60);
        return child.cause();
    }

    /** Returns the shell commands that write this frame. */
    private static String frame(int length, long number, byte[] message) {
        StringBuilder octal = new StringBuilder("printf '");
        var bytes = java.nio.ByteBuffer.allocate(12 + message.length).putInt(length).putLong(number).put(message);
        for (byte each : bytes.array()) octal.append(String.format("\\%03o", each & 0xff));
        return octal.append("'").toString();
    }

    private static String frame(long number, Object... call) {
        byte[] message = PythonCalls.bytes(call);
        return frame(message.length, number, message);
    }

    @Test
    void whatItCallsLastIsDoneBeforeItsEndIsKnown() throws Exception {
        String many = "i=0; while [ $i -lt 2000 ]; do " + frame(0, "gauge", "Last", "", "Value", 1.0) + "; i=$((i+1)); done; ";
        end(start(many + frame(0, "gauge", "Last", "", "Value", 2.0)));
        assertEquals(List.of(""), host.gauges.names("Last", "Value", 2));
    }

    /** For example, the log goes to a pipe that nobody reads. In the broker's process this would delay only log lines, too. */
    @Test
    @Timeout(60)
    void aLogThatWaitsHoldsUpNoOtherCall() throws Exception {
        PrintStream before = System.err;
        var log = new CompletableFuture<String>();
        var open = new CountDownLatch(1);
        System.setErr(new PrintStream(OutputStream.nullOutputStream()) {
            @Override
            public void println(String line) {
                if (line.contains("a plugin's line")) log.complete(line);
                if (log.isDone()) assertDoesNotThrow(() -> open.await());
            }
        });
        try {
            Child child = start(frame(1, "log", "quotahost.x", 30, "a plugin's line") + "; " + frame(0, "gauge", "Later", "", "Value", 1.0)
                    + "; head -c 12 > /dev/null");
            log.get();
            while (host.gauges.names("Later", "Value", 1).isEmpty()) Thread.sleep(1);
            open.countDown();
            end(child);
        } finally {
            open.countDown();
            System.setErr(before);
        }
    }

    @Test
    void whatIsCutTooLargeOrNoFrameEndsTheProcessWithAReason() throws Exception {
        for (var wrong : Map.of(frame(1_000_000_000, 1, new byte[] {'N'}), "a frame of 1000000000 bytes",
                frame(-1, 1, new byte[0]), "a frame of -1 bytes", frame(50, 1, new byte[3]) + "; exec >&-", "was cut",
                frame(1, 1, new byte[] {'?'}), "cannot be read",
                // With -XX:+ExitOnOutOfMemoryError the broker would end if it made room for 2 GB.
                frame(5, 1, new byte[] {'B', 127, -1, -1, -1}), "a value of 2147483647 bytes",
                frame(5, 1, new byte[] {'d', 127, -1, -1, -1}), "a value of 17179869176 bytes",
                frame(5, 1, new byte[] {'S', -1, -1, -1, -1}), "a value of -1 bytes").entrySet()) {
            Files.deleteIfExists(folder.resolve("python"));
            String why = end(start(wrong.getKey() + "; sleep 30"));
            assertTrue(why.startsWith("client.quota.callback.python.executable=" + folder.resolve("python")), why);
            assertTrue(why.contains("SIGKILL") && why.contains(wrong.getValue()), why);
        }
    }

    /** For example, a plugin has closed all files, or has started another program in place of Python. */
    @Test
    void oneThatCanCallNoMoreIsEndedWhateverItDoes() throws Exception {
        String why = end(start("exec >&-; sleep 30"));
        assertTrue(why.endsWith("ended by SIGKILL: it has closed the pipe of its calls"), why);
    }

    /** The host thread asks without waiting, and may ask between the end of the pipe and the end of the process. */
    @Test
    void whyAnUpgradeEndedIsToldThoughItsPipeEndedFirst() throws Exception {
        Child child = start("echo a plugin is missing >&2; exec >&-; sleep 0.02; exit 3", true);
        while (!child.ended(0)) Thread.sleep(1);
        String why = child.cause();
        assertTrue(why.endsWith("ended with exit code 3: a plugin is missing"), why);
    }

    @Test
    void aListOfListsWithoutEndIsNoFrameEither() throws Exception {
        var deep = java.nio.ByteBuffer.allocate(12 + 1_000_000).putInt(1_000_000).putLong(1);
        while (deep.hasRemaining()) deep.put((byte) 'L').putInt(1);
        Files.write(folder.resolve("deep"), deep.array());
        String why = end(start("cat " + folder.resolve("deep") + "; sleep 30"));
        assertTrue(why.contains("SIGKILL") && why.contains("cannot be read"), why);
    }

    @Test
    void oneThatPrintsWithoutEndIsStillLookedAfter() throws Exception {
        Child child = start("exec yes 3>&1 >&2"); // the pipe of its calls stays open
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> assertFalse(child.ended(500)));
        child.kill("it hangs");
        assertTrue(end(child).endsWith("ended by SIGKILL: it hangs"));
    }

    @Test
    void aProcessThatDoesNotReadIsKilledAllTheSame() throws Exception {
        String many = frame(1, "properties");
        properties = Map.of("client.quota.callback.x", "x".repeat(100_000));
        // The pipes of the shell's own child stay open, like those of a process that a plugin has started.
        Child child = start(many + "; " + many + "; " + many + "; sleep 10");
        assertFalse(child.ended(500));
        child.kill("it hangs");
        assertTrue(end(child).endsWith("ended by SIGKILL: it hangs"));
    }

    @Test
    void oneThatWaitsForItsTurnChangesNothingUntilThen() throws Exception {
        Child child = start(frame(0, "gauge", "Turn", "", "Value", 1.0) + "; " + frame(1, "built") + "; head -c 12 > /dev/null", true);
        child.built.get(20, TimeUnit.SECONDS);
        assertTrue(host.gauges.all().stream().noneMatch(each -> each.type().equals("Turn")));
        assertFalse(child.ended(100));
        child.takeTurn();
        assertTrue(host.gauges.all().stream().anyMatch(each -> each.type().equals("Turn")));
        end(child);
    }

    /** For example, a plugin counts in a loop from its first moment on, and the upgrade waits to be applied. */
    @Test
    void oneThatTellsWithoutEndBeforeItsTurnDoesNotFillTheHeap() throws Exception {
        byte[] count = PythonCalls.bytes("count", "Early", "", "Calls", 1.0);
        var frames = java.nio.ByteBuffer.allocate(20_000 * (12 + count.length));
        while (frames.hasRemaining()) frames.putInt(count.length).putLong(0).put(count);
        Files.write(folder.resolve("frames"), frames.array());
        Child child = start("cat " + folder.resolve("frames") + "; " + frame(1, "built") + "; head -c 12 > /dev/null", true);
        child.built.get(20, TimeUnit.SECONDS);

        child.takeTurn();

        assertEquals(List.of(""), host.gauges.names("Early", "Calls", Child.MOST_DEFERRED));
        end(child);
    }

    /** For example, an administrator has asked for the upgrade and not applied it. */
    @Test
    @Timeout(60)
    void oneThatGetsNoTurnLeavesNoThreadBehindAndChangesNothing() throws Exception {
        Child child = start(frame(1, "built") + "; head -c 13 > /dev/null; " + frame(0, "gauge", "Late", "", "Value", 1.0)
                + "; sleep 50", true);
        child.built.get(20, TimeUnit.SECONDS);
        assertTrue(isAwaited());

        child.discard("another change");

        end(child);
        while (isAwaited()) Thread.sleep(10);
        assertTrue(host.gauges.all().stream().noneMatch(each -> each.type().equals("Late")));
    }

    private static boolean isAwaited() {
        return Thread.getAllStackTraces().values().stream().flatMap(Stream::of)
                .anyMatch(frame -> frame.getMethodName().equals("awaitTurn"));
    }

    @Test
    void thousandProcessesLeaveNoThreadAndNoOpenFileBehind() throws Exception {
        for (int i = 0; i < 20; i++) end(start("echo broken >&2; exit 1"));
        long threads = threads();
        long files = files();
        for (int i = 0; i < 1_000; i++) end(start(""));
        for (int i = 0; i < 200 && threads() > threads; i++) Thread.sleep(50);
        assertTrue(threads() <= threads + 2, threads + " threads became " + threads());
        assertTrue(files() <= files + 10, files + " open files became " + files());
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(each -> each.getName().startsWith("quotahost")).count();
    }

    private static long files() throws Exception {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        }
    }

    /** For example, a broker with a child has stored it for the whole cluster. */
    @Test
    @Timeout(30)
    void withPythonInTheBrokerAGenerationThatIsStoredAllTheSameHindersNoOtherChange() throws Exception {
        String generation = "client.quota.callback.python.generation";
        assertThrows(ConfigException.class, () -> host.check(new BrokerConfigs(Map.of(generation, "2"), Map.of())));
        host.apply(Map.of(generation, "2"));
        var other = new BrokerConfigs(Map.of(generation, "2", "client.quota.callback.floor.bytes", "7"), Map.of());
        var checked = CompletableFuture.runAsync(() -> host.check(other));
        while (!checked.isDone()) {
            for (var event : host.inbox.take(10).events()) {
                if (event.kind().equals("validate")) host.questions.answer((String) event.fields().get(0), "");
            }
        }
        checked.get();
        var third = new BrokerConfigs(Map.of(generation, "3"), Map.of());
        assertTrue(assertThrows(ConfigException.class, () -> host.check(third)).getMessage().contains("python.process=child"));
    }

    @Test
    void aChangeOfKeystoresAloneNeedsNoVerdict() {
        host.check(new BrokerConfigs(host.config.properties(), Map.of("listener.name.tls.ssl.keystore.location", "new.p12")));
    }

    @Test
    void aLinkOnTheWayToAnEnvironmentIsFollowedAndTheOneInItIsNot() throws Exception {
        Path bin = Files.createDirectories(folder.resolve("v1/bin"));
        Path python = Files.writeString(folder.resolve("base"), "#!/bin/sh\necho version=3.11.2\necho quotahost=0\necho executable=$0\n");
        assertTrue(python.toFile().setExecutable(true));
        Files.createSymbolicLink(bin.resolve("python3"), python);
        Files.createSymbolicLink(folder.resolve("current"), folder.resolve("v1"));
        assertEquals(bin.toRealPath().resolve("python3").toString(),
                PythonEnvironment.of(folder.resolve("current/bin/python3").toString(), true).executable());
    }

    // ---- the next life; broker tests see what an upgrade does ----

    /** The shell commands that start like Python. */
    private static final String START = frame(0, "starting") + "; " + frame(0, "built") + "; "
            + frame(0, "ready", List.of(), List.of()) + "\n";

    /** Returns properties of a broker whose Python is this shell script; {@code executable} is its last answer to the probe. */
    private Map<String, String> python(String executable, String script) throws Exception {
        Path python = Files.writeString(folder.resolve("python"), "#!/bin/sh\ncase \"$3\" in *host.bridge*) ;;"
                + " *) echo version=3.11.2; echo quotahost=0; " + executable + "; exit;; esac\n" + script + "\n");
        assertTrue(python.toFile().setExecutable(true));
        return Map.of("client.quota.callback.python.executable", python.toString(), "client.quota.callback.python.process", "child");
    }

    private static PythonHost started(Map<String, String> properties) {
        PythonHost host = new PythonHost(new BrokerConfigs(properties, Map.of("node.id", "1")));
        host.lives.start();
        return host;
    }

    private static void end(PythonHost host) {
        host.lives.end();
        host.lives.awaitEnd(1);
    }

    @Test
    void thePauseGrowsFromTheThirdShortLifeInARowUpToABound() {
        assertEquals(List.of(500L, 500L, 1_000L, 2_000L, 4_000L, 8_000L, 16_000L, 30_000L, 30_000L),
                IntStream.rangeClosed(1, 9).mapToObj(Lives::pause).toList());
        assertEquals(30_000, Lives.pause(Integer.MAX_VALUE));
    }

    /** For example, the machine cannot make another thread. Whatever prevents one life, the next one may begin. */
    @Test
    @Timeout(60)
    void aLifeThatCannotBeginIsFollowedByAnother() throws Exception {
        Path probes = Files.writeString(folder.resolve("probes"), ""), lives = Files.writeString(folder.resolve("lives"), "");
        // The second answer to the probe lacks the executable, which the code does not expect.
        PythonHost host = started(python("echo >> " + probes + "; [ $(wc -l < " + probes + ") = 2 ] || echo executable=$0",
                "echo >> " + lives + "\n[ $(wc -l < " + lives + ") = 2 ] && exit 1\n" + START
                + "[ $(wc -l < " + lives + ") = 1 ] || exec sleep 50\n"
                + frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null; exit 1")); // as soon as it is ready

        while (Files.readString(lives).length() < 3) Thread.sleep(10);
        end(host);
    }

    /** For example, tests have several clusters in one JVM: the end of a host must not remove what belongs to the next host. */
    @Test
    @Timeout(60)
    void aHostBeginsOnceTheOneBeforeItHasEnded() throws Exception {
        Path first = Files.writeString(folder.resolve("first"), ""), second = Files.writeString(folder.resolve("second"), "");
        var config = new BrokerConfigs(python("echo executable=$0", START + "file=" + first + "; [ -e $file ] || file=" + second
                + "; while [ -e $file ]; do sleep 0.02; done"), Map.of("node.id", "1"));
        PythonHost one = PythonHost.acquire(config);
        Thread ends = new Thread(() -> PythonHost.release(one));
        ends.start();
        while (!one.lives.first.closing()) Thread.sleep(1);
        var begins = new FutureTask<>(() -> PythonHost.acquire(config));
        Thread next = new Thread(() -> {
            begins.run();
            Fence.install(true, true); // Kafka makes the authorizer after the callback
        });
        next.start();
        while (next.getState() != Thread.State.BLOCKED && next.isAlive()) Thread.sleep(1);
        Files.delete(first);
        ends.join();
        next.join();

        assertTrue(Fence.installed());
        Files.delete(second);
        PythonHost.release(begins.get());
    }

    /** The calling thread waits for nothing else. */
    @Test
    @Timeout(60)
    void aProcessIsAnsweredAlsoWhereTheHeapIsFull() throws Exception {
        properties = new HashMap<>(properties) {
            @Override
            public Set<Entry<String, String>> entrySet() {
                throw new FullHeap();
            }
        };
        String why = end(start(frame(1, "properties") + "; head -c " + (12 + Calls.FULL.length) + " > /dev/null; exit 3"));
        assertTrue(why.contains("exit code 3"), why);
    }

    /** For example, the heap is full for a moment: the serving Python goes on, and another one follows when it ends. */
    @Test
    @Timeout(60)
    void anErrorOfAMomentEndsNeitherPythonNorWhoLooksAfterIt() throws Exception {
        Path lives = Files.writeString(folder.resolve("lives"), ""), ended = folder.resolve("ended");
        AtomicInteger errors = new AtomicInteger();
        PythonHost host = started(new HashMap<>(python("echo executable=$0", "echo >> " + lives + "\n" + START
                + frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null\n"
                + "while [ ! -e " + ended + " ]; do sleep 0.1; done; rm " + ended)) {
            @Override
            public String getOrDefault(Object name, String otherwise) {
                if (errors.get() > 0 && errors.getAndDecrement() > 0) throw new OutOfMemoryError("for a moment");
                return super.getOrDefault(name, otherwise);
            }
        });
        errors.set(3);
        while (errors.get() > 0) Thread.sleep(10);
        assertEquals(1, Files.readString(lives).length());
        Files.writeString(ended, "");

        while (Files.readString(lives).length() < 2) Thread.sleep(10);
        end(host);
    }

    /** The thread that probes the interpreter ends without an answer. */
    @Test
    @Timeout(60)
    void aProbeThatTheFullHeapEndsDelaysTheNextLifeAndDoesNotPreventIt() throws Exception {
        Path lives = Files.writeString(folder.resolve("lives"), "");
        AtomicInteger errors = new AtomicInteger(1);
        PythonHost host = started(new HashMap<>(python("echo executable=$0", "echo >> " + lives + "\n"
                + "[ $(wc -l < " + lives + ") = 2 ] && exit 1\n" + START + "[ $(wc -l < " + lives + ") = 1 ] || exec sleep 50\n"
                + frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null; exit 1")) {
            @Override
            public String getOrDefault(Object name, String otherwise) {
                boolean probes = Thread.currentThread().getName().equals("quotahost-probe");
                if (probes && errors.getAndDecrement() > 0) throw new FullHeap();
                return super.getOrDefault(name, otherwise);
            }
        });

        while (Files.readString(lives).length() < 3) Thread.sleep(10);
        assertTrue(errors.get() <= 0);
        end(host);
    }

    /** The next life starts with the properties that were in force, since the new ones may have ended the previous life. */
    @Test
    @Timeout(60)
    void aChangeThatPythonHadTakenWhenItEndedIsShownAsRefused() throws Exception {
        Path second = folder.resolve("second");
        Map<String, String> properties = python("echo executable=$0", START
                + "[ -e " + second + " ] && exec sleep 50; touch " + second + "\n"
                + frame(1, "take", 50_000) + "; head -c 12 > /dev/null; exit 1");
        PythonHost host = started(properties);
        host.gauges.set("Host", "", "ConfigRefused", 0);
        Map<String, String> next = new HashMap<>(properties);
        next.put("client.quota.callback.floor.bytes", "7");
        host.apply(next);

        while (host.gauges.names("Host", "ConfigRefused", 1).isEmpty()) Thread.sleep(10);
        end(host);
    }

    /** The log names what an upgrade has replaced. For example, python.executable leads nowhere when Python starts again. */
    @Test
    void aProcessThatDidNotStartHasAName() {
        var environment = new CompletableFuture<PythonEnvironment>();
        assertEquals("a process that did not start", new Child(host, host.config, environment, false).toString());
    }

    /** The serving Python ends repeatedly. A better one must not wait for the pause, neither now nor after an end of its own. */
    @Test
    @Timeout(120)
    void anUpgradeInThePauseAfterManyShortLivesIsBuiltAndEndsThePauses() throws Exception {
        Path lives = Files.writeString(folder.resolve("lives"), ""), ended = folder.resolve("ended");
        Map<String, String> properties = python("echo executable=$0", "echo >> " + lives + "\n" + START
                + "[ $(wc -l < " + lives + ") -le 6 ] || while [ ! -e " + ended + " ]; do sleep 0.1; done; rm -f " + ended + "\n"
                + frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null; exit 1"); // as soon as it is ready
        PythonHost host = started(properties);
        while (host.lives.restarts < 6) Thread.sleep(10); // the pause is 8 s
        host.gauges.set("Host", "", "ConfigRefused", 1); // until another generation serves
        Map<String, String> next = new HashMap<>(properties);
        next.put("client.quota.callback.python.generation", "2");

        assertTimeoutPreemptively(Duration.ofSeconds(6), () -> {
            host.check(new BrokerConfigs(next, Map.of()));
            host.apply(next);
            while (host.gauges.names("Host", "ConfigRefused", 0).isEmpty()) Thread.sleep(10);
        });
        assertEquals(7, Files.readString(lives).length());
        Files.writeString(ended, "");
        assertTimeoutPreemptively(Duration.ofSeconds(6), () -> {
            while (Files.readString(lives).length() < 8) Thread.sleep(10);
        });
        end(host);
    }

    /** For example, a plugin hangs while it is built, so the serving Python cannot start again, and the upgrade should help. */
    @Test
    @Timeout(50) // a Python that is not ready is killed after 60 s
    void anUpgradeDoesNotWaitForALifeThatHangsAtItsStart() throws Exception {
        Path lives = Files.writeString(folder.resolve("lives"), "");
        Map<String, String> properties = python("echo executable=$0", "echo >> " + lives + "\n"
                + "[ $(wc -l < " + lives + ") = 2 ] && { " + frame(0, "starting") + "; exec sleep 100; }\n" + START
                + "[ $(wc -l < " + lives + ") = 1 ] || exec sleep 100\n"
                + frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null; exit 1"); // as soon as it is ready
        PythonHost host = started(properties);
        while (Files.readString(lives).length() < 2) Thread.sleep(10);
        host.gauges.set("Host", "", "ConfigRefused", 1); // until another generation serves
        Map<String, String> next = new HashMap<>(properties);
        next.put("client.quota.callback.python.generation", "2");
        host.check(new BrokerConfigs(next, Map.of()));
        host.apply(next);

        while (host.gauges.names("Host", "ConfigRefused", 0).isEmpty()) Thread.sleep(10);
        end(host);
    }

    /** For example, a plugin hangs, and the upgrade should help: the change before the upgrade must not come into force later. */
    @Test
    @Timeout(60)
    void afterAnUpgradeNoChangeHoldsThatTheOldPythonHasNotTaken() throws Exception {
        Map<String, String> properties = python("echo executable=$0", START + "exec sleep 50");
        PythonHost host = started(properties);
        host.inbox.cluster("c", List.of("1")); // Kafka has applied its stored properties
        Map<String, String> next = new HashMap<>(properties);
        next.put("client.quota.callback.floor.bytes", "7");
        host.apply(next);
        next.putAll(Map.of("client.quota.callback.python.generation", "2", "client.quota.callback.floor.bytes", "8"));
        host.gauges.set("Host", "", "ConfigRefused", 1); // until another generation serves
        host.apply(next);
        while (host.gauges.names("Host", "ConfigRefused", 0).isEmpty()) Thread.sleep(10);

        List<Object> changes = new ArrayList<>(List.of(next)); // the new Python has begun with this change
        synchronized (host.lives) { // it has its turn
            Inboxes.awaitEvents(host.inbox).stream().filter(event -> event.kind().equals("reconfigure"))
                    .forEach(event -> changes.addAll(event.fields()));
        }
        assertEquals(Set.of(next), Set.copyOf(changes));
        end(host);
    }

    /** Only the broker that gets the request can refuse a change: another broker may have no such Python. */
    @Test
    @Timeout(60)
    void aGenerationThatCannotBeBuiltIsShownUntilItIsChangedAgainAndOtherPropertiesHoldAllTheSame() throws Exception {
        Path second = folder.resolve("second");
        Map<String, String> properties = python("echo executable=$0", "[ -e " + second + " ] && exit 1; touch " + second + "\n"
                + START + "exec sleep 50");
        PythonHost host = started(properties);
        host.inbox.cluster("c", List.of("1")); // Kafka has applied its stored properties
        Map<String, String> next = new HashMap<>(properties);
        next.putAll(Map.of("client.quota.callback.python.generation", "2", "client.quota.callback.floor.bytes", "7"));
        Inboxes.awaitEvents(host.inbox);
        host.apply(next);

        assertEquals(List.of(List.of(next)), Inboxes.awaitEvents(host.inbox).stream().map(Batch.Event::fields).toList());
        host.gauges.set("Host", "", "ConfigRefused", 0); // Python does this when the properties are in force
        assertEquals(List.of(""), host.gauges.names("Host", "ConfigRefused", 1));
        host.apply(properties);
        assertEquals(List.of(""), host.gauges.names("Host", "ConfigRefused", 0));
        end(host);
    }
}
