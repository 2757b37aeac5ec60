package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.quotahost.util.LogCapture;

/** Tests the operators' socket: who can open it, and what it answers. */
@Timeout(30)
class AdminSocketTest {
    @TempDir
    Path temporary;

    private Path directory;
    private final List<AutoCloseable> open = new ArrayList<>();

    @BeforeEach
    void place() {
        directory = temporary.resolve("admin");
        System.setProperty(AdminSocket.DIRECTORY, directory.toString());
    }

    @AfterEach
    void end() throws Exception {
        System.clearProperty(AdminSocket.DIRECTORY);
        for (AutoCloseable each : open) each.close();
    }

    private AdminSocket started() {
        var socket = new AdminSocket("7", words -> {
            if (words[0].equals("fail")) throw new IllegalStateException("no \"table\"\nhere");
            return "[\"" + String.join("|", words) + "\"]";
        });
        open.add(socket);
        socket.start();
        return socket;
    }

    private Path path() {
        return directory.resolve("broker-7-" + ProcessHandle.current().pid() + ".sock");
    }

    private final class Client {
        final SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(path()));
        final BufferedReader in =
                new BufferedReader(new InputStreamReader(Channels.newInputStream(channel), StandardCharsets.UTF_8));

        Client() throws IOException {
            open.add(channel);
        }

        /** Returns null if the broker has closed the connection. */
        String ask(String line) throws IOException {
            try {
                channel.write(ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.ISO_8859_1)));
                return in.readLine();
            } catch (IOException e) {
                return null;
            }
        }
    }

    @Test
    void aConnectionAsksAgainAndAgainAndAnyNameArrives() throws Exception {
        started();
        var client = new Client();
        assertEquals("[\"client|a b|\u00fc\n\"]", client.ask("client a%20b %C3%BC%0A") + "\n" + client.in.readLine());
        assertEquals("[\"client||\"]", client.ask("client  "));
        assertEquals("{\"error\":\"java.lang.IllegalStateException: no \\\"table\\\"\\u000ahere\"}", client.ask("fail"));
        assertEquals("[\"state\"]", client.ask("state"));
    }

    @Test
    void garbageIsAnsweredOrEndsTheConnectionAndHarmsNobody() throws Exception {
        started();
        assertTrue(new Client().ask("%zz").startsWith("{\"error\":"));
        assertEquals("[\"\"]", new Client().ask(""));
        byte[] noise = new byte[10_000];
        new Random(1).nextBytes(noise);
        new Client().ask(new String(noise, StandardCharsets.ISO_8859_1));
        assertEquals("[\"state\"]", new Client().ask("state"));
    }

    @Test
    void aDirectoryThatOthersCanOpenOrThatIsNoneIsRefusedAndTheBrokerGoesOn() throws Exception {
        Files.createDirectory(directory);
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-x---"));
        started().close();
        assertFalse(Files.exists(path()));
        Files.delete(directory);
        Path elsewhere = Files.createDirectory(temporary.resolve("elsewhere"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        Files.createSymbolicLink(directory, elsewhere);
        started().close();
        System.setProperty(AdminSocket.DIRECTORY, temporary.resolve("x".repeat(120)).toString());
        started().close();
        System.setProperty(AdminSocket.DIRECTORY, temporary.resolve("no/such").toString());
        String log = LogCapture.during(() -> started().close());
        assertTrue(log.contains("NoSuchFileException: " + temporary.resolve("no/such")), log);
        try (Stream<Path> files = Files.list(elsewhere)) {
            assertEquals(List.of(), files.toList());
        }
    }

    /** {@code quotahost explain} finds a socket by the path that the kernel lists, and runs in another directory. */
    @Test
    void aRelativeDirectoryIsOneOfTheBrokersWorkingDirectory() throws Exception {
        Path working = Path.of("").toAbsolutePath();
        System.setProperty(AdminSocket.DIRECTORY, working.relativize(directory).toString());
        String log = LogCapture.during(this::started);
        assertTrue(log.contains("through the socket " + working), log);
    }

    /** For example, each broker is process 1 of its container, and the previous broker was killed. */
    @Test
    void aSocketOfItsOwnNameThatNobodyListensAtIsReplaced() throws Exception {
        Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(path())).close();
        started();
        assertEquals("[\"state\"]", new Client().ask("state"));
    }

    /** As in a container that runs with any user id. The kernel must let this test make a user namespace. */
    @Test
    void aUserWithoutANameHasASocket() throws Exception {
        var asUser = List.of("unshare", "--user", "--map-user=5151");
        assumeTrue(new ProcessBuilder("sh", "-c", String.join(" ", asUser) + " true").start().waitFor() == 0);
        List<String> command = new ArrayList<>(asUser);
        command.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1",
                "-D" + AdminSocket.DIRECTORY + "=" + directory, "-cp", System.getProperty("java.class.path"),
                Main.class.getName(), directory.toString()));
        Process jvm = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String files = new String(jvm.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals("[" + directory.resolve("broker-7-" + jvm.pid() + ".sock") + "]\n", files);
    }

    /** The program of that user: it prints the files of the sockets' directory. */
    static final class Main {
        private Main() {}

        public static void main(String[] directory) throws IOException {
            new AdminSocket("7", words -> "[]").start();
            try (Stream<Path> files = Files.list(Path.of(directory[0]))) {
                System.out.println(files.toList());
            }
            System.exit(0);
        }
    }
}
