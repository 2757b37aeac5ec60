package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.quotahost.util.BrokerConfigs;

/** How a Python host that has ended is started again; broker tests see what an upgrade does. */
class LivesTest {
    /** A shell's words that start as Python does. */
    private static final String START = ChildTest.frame(0, "starting") + "; " + ChildTest.frame(0, "built") + "; "
            + ChildTest.frame(0, "ready", List.of(), List.of()) + "\n";

    @TempDir
    Path folder;

    /** The properties of a broker whose Python this shell plays; {@code executable} is its last answer to the probe. */
    private Map<String, String> python(String executable, String script) throws Exception {
        Path python = Files.writeString(folder.resolve("python"), "#!/bin/sh\ncase \"$3\" in *host.bridge*) ;;"
                + " *) echo version=3.11.2; echo quotahost=0; " + executable + "; exit;; esac\n" + script + "\n");
        assertTrue(python.toFile().setExecutable(true));
        return Map.of("client.quota.callback.python.executable", python.toString(), "client.quota.callback.python.process", "child");
    }

    private static PythonHost started(Map<String, String> properties) {
        PythonHost host = new PythonHost(new BrokerConfigs(properties, Map.of("node.id", "1")));
        host.lives.start(host.config());
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

    /** Such as a machine that can make no further thread: whatever hinders one life, the next one may begin. */
    @Test
    @Timeout(60)
    void aLifeThatCannotBeginIsFollowedByAnother() throws Exception {
        Path probes = Files.writeString(folder.resolve("probes"), ""), lives = Files.writeString(folder.resolve("lives"), "");
        // The second answer to the probe lacks the executable, which nothing foresees.
        PythonHost host = started(python("echo >> " + probes + "; [ $(wc -l < " + probes + ") = 2 ] || echo executable=$0",
                "echo >> " + lives + "\n[ $(wc -l < " + lives + ") = 2 ] && exit 1\n" + START
                + "[ $(wc -l < " + lives + ") = 1 ] || exec sleep 50\n"
                + ChildTest.frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null; exit 1")); // once it is ready

        while (Files.readString(lives).length() < 3) Thread.sleep(10);
        end(host);
    }

    /** Such as a heap that is full for a moment: what serves goes on, and is followed by another one when it ends. */
    @Test
    @Timeout(60)
    void anErrorOfAMomentEndsNeitherPythonNorWhoLooksAfterIt() throws Exception {
        Path lives = Files.writeString(folder.resolve("lives"), ""), ended = folder.resolve("ended");
        AtomicInteger errors = new AtomicInteger();
        PythonHost host = started(new HashMap<>(python("echo executable=$0", "echo >> " + lives + "\n" + START
                + ChildTest.frame(1, "ready", List.of(), List.of()) + "; head -c 12 > /dev/null\n"
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

    /** The next one starts with the properties that were in force, since the new ones may be why it ended. */
    @Test
    @Timeout(60)
    void aChangeThatPythonHadTakenWhenItEndedIsShownAsRefused() throws Exception {
        Path second = folder.resolve("second");
        Map<String, String> properties = python("echo executable=$0", START
                + "[ -e " + second + " ] && exec sleep 50; touch " + second + "\n"
                + ChildTest.frame(1, "take", 50_000) + "; head -c 12 > /dev/null; exit 1");
        PythonHost host = started(properties);
        host.gauges.set("Host", "", "ConfigRefused", 0);
        Map<String, String> next = new HashMap<>(properties);
        next.put("client.quota.callback.floor.bytes", "7");
        host.apply(next);

        while (host.gauges.names("Host", "ConfigRefused", 1).isEmpty()) Thread.sleep(10);
        end(host);
    }
}
