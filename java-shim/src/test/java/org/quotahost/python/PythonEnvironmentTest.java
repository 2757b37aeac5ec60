package org.quotahost.python;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An interpreter that cannot work is refused with a message that says what to do; one that can gets code in plain ASCII. */
class PythonEnvironmentTest {
    private static final Properties BUILT = PythonEnvironment.built();

    private final Map<String, String> facts = new HashMap<>(Map.of("version", "3.11.2", "executable", "/opt/q/bin/python",
            "libpython", "/usr/lib/libpython3.11.so.1.0", "attach", "/opt/q/libquotahost.so", "free-threaded", "false",
            "quotahost", BUILT.getProperty("quotahost"), "jpype", BUILT.getProperty("jpype")));

    @Test
    void theRightOneIsTaken() {
        assertNull(PythonEnvironment.problem("/opt/q/bin/python", facts, false));
        facts.put("version", "3.14.0rc1");
        assertNull(PythonEnvironment.problem("/opt/q/bin/python", facts, false));
    }

    @ParameterizedTest
    @CsvSource({
        "version, '', is no Python",
        "version, 3.10.14, 'is Python 3.10.14; 3.11 or newer is needed'",
        "version, 2.7.18, 'is Python 2.7.18; 3.11 or newer is needed'",
        "free-threaded, true, free-threaded build",
        "quotahost, '', 'quotahost is not installed there; run: /opt/q/bin/python -m pip install quotahost=='",
        "quotahost, 9.9.9, 'has quotahost 9.9.9, this jar needs'",
        "jpype, 1.6.0, 'has jpype 1.6.0, this jar needs 1.7.1; run: /opt/q/bin/python -m pip install'",
        "jpype, '', 'has jpype not installed, this jar needs 1.7.1'",
        "libpython, '', 'apt install libpython3.11'",
        "attach, '', 'no library for this platform; there are some for linux x86-64 and aarch64'",
    })
    void eachFaultIsNamedWithThePropertyAndTheRemedy(String fact, String value, String message) {
        facts.put(fact, value);

        String problem = PythonEnvironment.problem("/opt/q/bin/python", facts, false);

        assertTrue(problem.contains(message), problem);
    }

    @Test
    void aProgramThatFailsIsQuoted(@TempDir Path folder) throws Exception {
        String script = script(folder, "echo broken interpreter >&2; exit 3");

        String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of(script, false)).getMessage();

        assertTrue(message.contains("is no working Python 3.11+: broken interpreter"), message);
    }

    /** A wrapper's child may keep the output open, so that it never ends. */
    @Test
    void aProgramWhoseOutputStaysOpenIsNotWaitedForForEver(@TempDir Path folder) throws Exception {
        String script = script(folder, "sleep 60 &\necho $! > " + folder.resolve("pid") + "\necho version=3.11.2\nsleep 0.5");
        try {
            String message = assertThrows(ConfigException.class, () -> PythonEnvironment.of(script, false, 1)).getMessage();

            assertTrue(message.contains("did not answer within 1 s"), message);
        } finally {
            ProcessHandle.of(Long.parseLong(Files.readString(folder.resolve("pid")).strip())).ifPresent(ProcessHandle::destroy);
        }
    }

    @Test
    void theFactsOfTheProbeAreTakenOver(@TempDir Path folder) throws Exception {
        StringBuilder lines = new StringBuilder("echo 'a warning without sense'\n");
        facts.forEach((key, value) -> lines.append("echo '").append(key).append('=').append(value).append("'\n"));
        lines.append("echo 'path=/a=b'\necho 'path=/c d'\n");

        PythonEnvironment environment = PythonEnvironment.of(script(folder, lines.toString()), false);

        assertEquals(new PythonEnvironment("/opt/q/bin/python", "/usr/lib/libpython3.11.so.1.0", "/opt/q/libquotahost.so",
                List.of("/a=b", "/c d")), environment);
    }

    private static String script(Path folder, String body) throws Exception {
        Path file = Files.writeString(folder.resolve("python"), "#!/bin/sh\n" + body + "\n");
        assertTrue(file.toFile().setExecutable(true));
        return file.toString();
    }

    @Test
    void aPythonLiteralIsPlainAscii() {
        assertEquals("\"a\\U0000005c\\U00000022\\U000000fc\\U0001d11e\\U0000000a\"", Interpreter.literal("a\\\"ü𝄞\n"));
    }
}
