package org.quotahost.python;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Locale;

/**
 * Loads the attach library for this platform, which the jar contains (native/PLATFORM/libquotahost.EXT).
 *
 * <p>The library is attach.c: it starts Python in the JVM that runs already, and gives JPype this JVM instead of a
 * new one.
 */
final class NativeLibrary {
    static final String PLATFORMS =
            "linux x86-64 and aarch64 (glibc and musl), macOS x86-64 and arm64";

    private NativeLibrary() {}

    /**
     * The resource for a platform.
     *
     * @param musl whether the C library is musl instead of glibc; only Linux has two
     * @throws StartException if there is no library for it
     */
    static String resource(String os, String arch, boolean musl) {
        String system = os.toLowerCase(Locale.ROOT);
        String cpu = switch (arch.toLowerCase(Locale.ROOT)) {
            case "amd64", "x86_64", "x86-64" -> "x86_64";
            case "aarch64", "arm64" -> "aarch64";
            default -> throw unsupported(os, arch);
        };
        if (system.startsWith("linux")) {
            return "/org/quotahost/native/" + cpu + "-linux-" + (musl ? "musl" : "gnu") + "/libquotahost.so";
        }
        if (system.startsWith("mac")) return "/org/quotahost/native/" + cpu + "-macos/libquotahost.dylib";
        throw unsupported(os, arch);
    }

    /** Loads the library into this JVM. Answers its file, which must stay until JPype has opened it, too. */
    static Path load() {
        String name = resource(System.getProperty("os.name"), System.getProperty("os.arch"), musl());
        Path file = extract(name);
        try {
            System.load(file.toString());
            return file;
        } catch (UnsatisfiedLinkError e) {
            remove(file);
            throw new StartException("the attach library " + file + " does not load: " + e.getMessage()
                    + ". If its folder is mounted noexec, give the broker another one by -Djava.io.tmpdir", e);
        }
    }

    /** Deletes the file and its directory, as far as they are there. */
    static void remove(Path file) {
        try {
            Files.deleteIfExists(file);
            Files.deleteIfExists(file.getParent());
        } catch (IOException e) {
            file.getParent().toFile().deleteOnExit(); // the last that is registered goes first
            file.toFile().deleteOnExit();
        }
    }

    private static Path extract(String name) {
        try (InputStream in = NativeLibrary.class.getResourceAsStream(name)) {
            if (in == null) throw new StartException("this jar was built without " + name + "; run 'make build'");
            Path directory = Files.createTempDirectory("quotahost-"); // 0700, whatever the umask
            Path file = directory.resolve(name.substring(name.lastIndexOf('/') + 1));
            try {
                // Made with its mode, so that it is nobody else's from its first byte on. A copy would take the umask's.
                Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
                try (OutputStream out = Files.newOutputStream(file)) {
                    in.transferTo(out);
                }
                return file;
            } catch (IOException | RuntimeException e) {
                remove(file);
                throw e;
            }
        } catch (IOException e) {
            throw new StartException("the attach library cannot be written to "
                    + System.getProperty("java.io.tmpdir") + ": " + e.getMessage(), e);
        }
    }

    /**
     * Whether this JVM runs on musl. It looks at what is mapped into the process, since both C libraries may be
     * installed.
     */
    private static boolean musl() {
        try (var maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.anyMatch(line -> line.contains("/ld-musl-"));
        } catch (IOException | java.io.UncheckedIOException e) {
            return false; // there is no /proc, so this is not Linux
        }
    }

    private static StartException unsupported(String os, String arch) {
        return new StartException("no attach library for " + os + " on " + arch + "; there is one for " + PLATFORMS);
    }
}
