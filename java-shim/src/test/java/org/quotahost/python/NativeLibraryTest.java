package org.quotahost.python;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** For which platforms there is an attach library, and who else can reach the file that is loaded. */
class NativeLibraryTest {
    @ParameterizedTest
    @CsvSource({
        "Linux,amd64,false", "Linux,amd64,true", "Linux,aarch64,false", "Linux,aarch64,true",
        "Mac OS X,x86_64,false", "Mac OS X,aarch64,false",
    })
    void thereIsALibraryForEveryPlatformThatIsPromised(String os, String arch, boolean musl) {
        assertNotNull(NativeLibrary.class.getResource(NativeLibrary.resource(os, arch, musl)));
    }

    @ParameterizedTest
    @CsvSource({"Windows 11,amd64", "Linux,riscv64"})
    void theErrorForAnyOtherPlatformNamesThoseThatThereAre(String os, String arch) {
        var error = assertThrows(ConfigException.class, () -> NativeLibrary.resource(os, arch, false));
        assertTrue(error.getMessage().contains(NativeLibrary.PLATFORMS));
    }

    @Test
    void theUnpackedLibraryIsTheBrokersAloneWhateverTheUmask(@TempDir Path folder) throws Exception {
        assertEquals("rw-------", run(folder).trim());
        assertEquals(List.of(), left(folder));
    }

    @Test
    void aLibraryThatDoesNotLoadIsRemoved(@TempDir Path folder) throws Exception {
        String other = System.getProperty("os.arch").equals("aarch64") ? "amd64" : "aarch64";
        String output = run(folder, "-Dos.arch=" + other);

        assertTrue(output.contains("does not load"), output);
        assertEquals(List.of(), left(folder));
    }

    /** Runs NativeLibraryProgram with the loosest umask; answers what it prints. */
    private static String run(Path folder, String... options) throws Exception {
        List<String> command = new ArrayList<>(List.of("sh", "-c", "umask 000; exec \"$@\"", "sh",
                Path.of(System.getProperty("java.home"), "bin/java").toString(), "-Djava.io.tmpdir=" + folder));
        command.addAll(List.of(options));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), NativeLibraryProgram.class.getName()));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return output;
    }

    /** The names of what the program has left in the folder, but for the JVM's own. */
    private static List<String> left(Path folder) throws IOException {
        try (var files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.startsWith("quotahost")).toList();
        }
    }
}
