package org.quotahost.python;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.kafka.common.config.ConfigException;

/**
 * Loads attach.c's library for this platform, which the jar contains (native/PLATFORM/libquotahost.EXT): it starts
 * Python in the JVM that runs already, and gives JPype this JVM instead of a new one.
 */
final class NativeLibrary {
    static final String PLATFORMS =
            "linux x86-64 and aarch64 (glibc and musl), macOS x86-64 and arm64";

    private NativeLibrary() {}

    /**
     * The resource for a platform; ConfigException if there is none.
     *
     * @param musl whether the C library is musl instead of glibc; only Linux has two
     */
    static String resource(String os, String arch, boolean musl) {
        String cpu = switch (arch.toLowerCase(Locale.ROOT)) {
            case "amd64", "x86_64", "x86-64" -> "x86_64";
            case "aarch64", "arm64" -> "aarch64";
            default -> null;
        };
        String file = os.startsWith("Linux") ? "-linux-" + (musl ? "musl" : "gnu") + "/libquotahost.so"
                : os.startsWith("Mac") ? "-macos/libquotahost.dylib" : null;
        if (cpu != null && file != null) return "/org/quotahost/native/" + cpu + file;
        throw new ConfigException("no attach library for " + os + " on " + arch + "; there is one for " + PLATFORMS);
    }

    /** Loads the library into this JVM. Answers its file, which must stay until JPype has opened it, too. */
    static Path load() {
        Path file = extract(resource(System.getProperty("os.name"), System.getProperty("os.arch"), musl()));
        try {
            System.load(file.toString());
            return file;
        } catch (UnsatisfiedLinkError e) {
            remove(file);
            throw new ConfigException("the attach library " + file + " does not load: " + e.getMessage()
                    + ". If its folder is mounted noexec, give the broker another one by -Djava.io.tmpdir");
        }
    }

    static void remove(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException e) {
            file.toFile().deleteOnExit();
        }
    }

    private static Path extract(String name) {
        try (InputStream in = NativeLibrary.class.getResourceAsStream(name)) {
            if (in == null) throw new ConfigException("this jar was built without " + name + "; run 'make build'");
            Path file = Files.createTempFile("quotahost-", "-" + name.substring(name.lastIndexOf('/') + 1)); // 0600
            try (OutputStream out = Files.newOutputStream(file)) { // a copy would make a file anew, by the umask
                in.transferTo(out);
                return file;
            } catch (IOException | RuntimeException e) {
                remove(file);
                throw e;
            }
        } catch (IOException e) {
            throw new ConfigException("the attach library cannot be written to "
                    + System.getProperty("java.io.tmpdir") + ": " + e.getMessage());
        }
    }

    /** Whether this JVM runs on musl, by what is mapped into the process: both C libraries may be installed. */
    private static boolean musl() {
        try (var maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.anyMatch(line -> line.contains("/ld-musl-"));
        } catch (IOException | UncheckedIOException e) {
            return false; // there is no /proc, so this is not Linux
        }
    }
}
