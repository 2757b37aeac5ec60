package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.SSLEngine;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.quotahost.util.LogCapture;

/** Tests how a question to the cluster ends if no broker answers; broker tests cover the answers. */
class ClusterAdminTest {
    private final ClusterAdmin admin = new ClusterAdmin("quotahost-1");

    @Test
    void withoutAnAddressEveryAnswerSaysSo() {
        admin.configure(new String[] {"security.protocol", "PLAINTEXT"});

        for (Executable question : List.<Executable>of(admin::brokers, () -> admin.logDirs(new int[] {1}),
                () -> admin.configs("BROKER", new String[] {"1"}))) {
            String problem = assertThrows(IOException.class, question).getMessage();
            assertTrue(problem.contains("static.kafka.admin.bootstrap.servers"), problem);
        }
    }

    @Test
    @Timeout(60)
    void aClusterThatTurnsItAwayFillsNoLog() throws Exception {
        try (ServerSocket plain = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Thread server = new Thread(() -> {
                try {
                    while (true) plain.accept().getOutputStream().write("no TLS".getBytes(StandardCharsets.US_ASCII));
                } catch (IOException e) {
                    return; // the test is over
                }
            });
            server.start();
            admin.configure(new String[] {"bootstrap.servers", "127.0.0.1:" + plain.getLocalPort(), "security.protocol", "SSL"});

            String log = LogCapture.during(() -> {
                for (int i = 0; i < 8; i++) { // as often as RegisteredBrokers asks before the first answer
                    var failure = assertThrows(ExecutionException.class, admin::brokers);
                    assertInstanceOf(AuthenticationException.class, failure.getCause());
                    LockSupport.parkNanos(Duration.ofMillis(500).toNanos());
                }
            });
            assertTrue(log.lines().count() < 300, log);
            admin.configure(new String[] {"security.protocol", "PLAINTEXT"});
            assertThrows(IOException.class, admin::brokers, "the client with the former login is gone");
        }
    }

    /** The client may also hang while it resolves a name or logs in by Kerberos; here it hangs while it sets up TLS. */
    @Test
    @Timeout(20)
    void aClientWhoseThreadHangsDelaysNoChangeAndNoShutdown() throws Exception {
        try (ServerSocket open = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            admin.configure(new String[] {"bootstrap.servers", "127.0.0.1:" + open.getLocalPort(), "security.protocol", "SSL",
                "ssl.engine.factory.class", Hanging.class.getName()});
            Thread asks = new Thread(() -> assertThrows(Exception.class, admin::brokers));
            asks.setDaemon(true);
            asks.start();
            Hanging.begun.await();

            assertTimeoutPreemptively(Duration.ofSeconds(8), () -> admin.configure(new String[0]));
            assertTimeoutPreemptively(Duration.ofSeconds(8), admin::end);
        } finally {
            Hanging.end.countDown();
        }
    }

    /** Kafka's client calls this on its own thread. */
    public static final class Hanging extends DefaultSslEngineFactory {
        private static final CountDownLatch begun = new CountDownLatch(1), end = new CountDownLatch(1);

        @Override
        public SSLEngine createClientSslEngine(String host, int port, String algorithm) {
            begun.countDown();
            try {
                end.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            throw new IllegalStateException("the test is over");
        }
    }
}
