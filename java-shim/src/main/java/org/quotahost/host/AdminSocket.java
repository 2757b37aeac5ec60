package org.quotahost.host;

import com.sun.security.auth.module.UnixSystem;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.URLDecoder;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.function.Function;
import java.util.stream.Stream;
import org.quotahost.util.Schedule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Unix domain socket that answers operators on this machine ({@code quotahost explain} and {@code top}). Only the broker's
 * own user and root can open it (a file of mode 0600 in a directory of mode 0700).
 *
 * <p>A question is a line of words, separated by a space, each percent-encoded in UTF-8. The answer is a line of JSON
 * (Questions). Neither Python nor a thread of Kafka's takes part, so the socket answers while the host hangs. Connections (one
 * thread each) and questions are not bounded, since a user that can connect could also end the broker.
 */
final class AdminSocket implements AutoCloseable {
    /** A JVM property: the directory to use instead of one in java.io.tmpdir. The path of a socket has at most 107 bytes on Linux. */
    static final String DIRECTORY = "quotahost.admin.dir";
    /** The pause after a connection could not be accepted, for example because too many files are open. */
    private static final long PAUSE_MS = 50;
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.admin");

    private final String node;
    private final Function<String[], String> answers;
    private final Schedule schedule = new Schedule("quotahost-admin");
    private Path path;
    private ServerSocketChannel server;

    /** @param answers answers the words of a question with a line of JSON; on any thread, several at once */
    AdminSocket(String node, Function<String[], String> answers) {
        this.node = node;
        this.answers = answers;
    }

    /** Makes the socket and listens. If that fails, the reason is logged, and the broker runs without the socket. */
    void start() {
        try {
            Path directory = directory();
            Path made = directory.resolve("broker-" + node + "-" + ProcessHandle.current().pid() + ".sock");
            Files.deleteIfExists(made); // the socket of a killed broker with the same process id, as in a container
            server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            server.bind(UnixDomainSocketAddress.of(made));
            path = made;
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
            schedule.every(PAUSE_MS, "taking connections of the admin socket", this::accept);
            LOG.info("quotahost explain and top reach this broker through the socket {}", path);
        } catch (IOException | RuntimeException | LinkageError e) {
            // A FileSystemException's message is often only a path; its class says what is wrong.
            boolean says = !(e instanceof FileSystemException) && e.getMessage() != null;
            LOG.warn("quotahost explain and top can't reach this broker: its socket can't be made ({}). Give the broker a"
                    + " directory of its own with -D{}=DIR", says ? e.getMessage() : e, DIRECTORY);
            close();
        }
    }

    @Override
    public void close() {
        schedule.end();
        if (server != null) close(server);
        if (path != null) close(() -> Files.deleteIfExists(path));
    }

    private static void close(Closeable what) {
        try {
            what.close();
        } catch (IOException e) {
            LOG.debug("{} can't be closed or removed", what, e);
        }
    }

    /** Makes or finds the directory. Throws IOException if another user owns it or can look into it. */
    private static Path directory() throws IOException {
        var user = new UnixSystem(); // JDK 17's has the id 0 for a user without a name, as in a container with any user id
        Object uid = user.getUsername() != null ? (int) user.getUid() : Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        String set = System.getProperty(DIRECTORY, ""), temporary = System.getProperty("java.io.tmpdir");
        Path directory = (set.isEmpty() ? Path.of(temporary, "quotahost-" + uid) : Path.of(set)).toAbsolutePath();
        var ours = PosixFilePermissions.fromString("rwx------");
        try {
            Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(ours));
        } catch (FileAlreadyExistsException e) {
            LOG.debug("{} is there", directory);
        }
        var attributes = Files.readAttributes(directory, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        if (!attributes.isDirectory()) throw new IOException(directory + " is no directory");
        Object owner = Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
        if (!owner.equals(uid)) throw new IOException(directory + " belongs to user " + owner);
        if (!ours.containsAll(attributes.permissions())) {
            String open = PosixFilePermissions.toString(attributes.permissions());
            throw new IOException(directory + " is open to others: " + open + ", and not rwx------");
        }
        return directory;
    }

    // ---- connections -----------------------------------------------------------------------------------------

    private void accept() {
        try {
            while (true) {
                SocketChannel channel = server.accept();
                try {
                    Schedule.daemon(() -> serve(channel), "quotahost-admin").start();
                } catch (Throwable e) { // no thread can be made: each further question would leave one more open file in the broker
                    channel.close();
                    throw e;
                }
            }
        } catch (IOException e) {
            LOG.debug("No connection can be accepted", e); // the socket is closed, or too many files are open
        }
    }

    private void serve(SocketChannel channel) {
        try (channel; var out = Channels.newOutputStream(channel)) {
            var in = new BufferedReader(new InputStreamReader(Channels.newInputStream(channel), StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.write((answer(line) + "\n").getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException e) {
            LOG.debug("A connection has ended", e); // treated as if there had been no question
        }
    }

    private String answer(String line) {
        try {
            return answers.apply(Stream.of(line.split(" ", -1))
                    .map(word -> URLDecoder.decode(word, StandardCharsets.UTF_8)).toArray(String[]::new));
        } catch (RuntimeException e) {
            return Questions.error(e.toString());
        }
    }
}
