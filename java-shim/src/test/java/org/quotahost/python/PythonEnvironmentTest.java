package org.quotahost.python;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.quotahost.util.Resources;

/** Tests that an interpreter that cannot work is refused with a message that gives the remedy. */
class PythonEnvironmentTest {
    @Test
    void whatTheProbeSaysIsWrongIsToldWithThePropertyAndTheRemedy(@TempDir Path folder) throws Exception {
        String script = script(folder, "printf 'version=3.9.1\nproblem=it is old: '\"$4 $6\"'\tname another\nproblem=second'");

        String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of(script, true)).getMessage();

        String built = Resources.versions().getProperty("quotahost");
        assertEquals("client.quota.callback.python.executable=" + script + ": it is old: " + built + " child; name another", message);
    }

    @ParameterizedTest
    @CsvSource({"echo hello, is not a Python interpreter", "echo broken interpreter >&2; exit 3, "
            + "'is no working Python 3.11+, it ended with exit code 3: broken interpreter'"})
    void aProgramThatIsNoPythonIsQuoted(String body, String told, @TempDir Path folder) throws Exception {
        String script = script(folder, body);

        String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of(script, false)).getMessage();

        assertTrue(message.contains(told), message);
    }

    @Test
    void aProgramThatWritesWithoutEndDoesNotFillTheHeap(@TempDir Path folder) throws Exception {
        String script = script(folder, "yes 'no Python' | head -c 30000000; exit 3"), endless = script(folder, "exec yes");

        for (String each : List.of(script, endless)) {
            String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of(each, true, 1)).getMessage();

            assertTrue(message.length() < 2_000, () -> message.length() + " characters");
        }
    }

    /** For example, a path that cannot be written in this locale. */
    @Test
    void aPathThatIsNoneIsRefusedByItsName() {
        String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of("/a\0b", true)).getMessage();

        assertTrue(message.contains("client.quota.callback.python.executable=/a\0b could not be run"), message);
    }

    /** A wrapper's child may keep the output open, so that the output never ends. */
    @Test
    void aProgramWhoseOutputStaysOpenIsNotWaitedForForEver(@TempDir Path folder) throws Exception {
        String script = script(folder, "sleep 60 &\necho $! > " + folder.resolve("pid") + "\necho version=3.11.2\nsleep 0.5");
        try {
            String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of(script, false, 1)).getMessage();

            assertTrue(message.contains("did not answer within 1 s"), message);
            // A worker of the common pool would run the reading task itself while it waits, and so wait forever.
            String ofWorker = CompletableFuture.supplyAsync(() -> assertThrows(ConfigException.class,
                    () -> PythonEnvironment.of(script, false, 1)).getMessage()).get(20, TimeUnit.SECONDS);
            assertEquals(message, ofWorker);
        } finally {
            ProcessHandle.of(Long.parseLong(Files.readString(folder.resolve("pid")).strip())).ifPresent(ProcessHandle::destroy);
        }
    }

    @Test
    void theFactsOfTheProbeAreTakenOver(@TempDir Path folder) throws Exception {
        String lines = """
                echo 'a warning without sense'
                echo version=3.11.2
                echo executable=/opt/q/bin/python
                echo libpython=/usr/lib/libpython3.11.so.1.0
                echo attach=/opt/q/libquotahost.so
                echo 'path=/a=b'
                echo 'path=/c d'
                """;

        PythonEnvironment environment = PythonEnvironment.of(script(folder, lines), false);

        assertEquals(new PythonEnvironment("/opt/q/bin/python", "/usr/lib/libpython3.11.so.1.0", "/opt/q/libquotahost.so",
                List.of("/a=b", "/c d")), environment);
    }

    private static String script(Path folder, String body) throws Exception {
        Path file = Files.writeString(folder.resolve("python"), "#!/bin/sh\n" + body + "\n");
        assertTrue(file.toFile().setExecutable(true));
        return file.toString();
    }
}
