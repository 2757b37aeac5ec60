package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.junit.jupiter.api.Test;

/** What a question to the cluster ends in where nobody answers; broker tests see the answers. */
class ClusterAdminTest {
    private final ClusterAdmin admin = new ClusterAdmin("quotahost-1");

    @Test
    void oneOfSeveralAddressesIsEnough() throws IOException {
        try (ServerSocket open = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String address = "127.0.0.1:" + open.getLocalPort();
            assertDoesNotThrow(() -> ClusterAdmin.reach("127.0.0.1:1, " + address));
        }
        assertThrows(IOException.class, () -> ClusterAdmin.reach("127.0.0.1:1,127.0.0.1:2"));
    }

    @Test
    void withoutAnAddressEveryAnswerSaysSo() {
        admin.configure(new String[] {"security.protocol", "PLAINTEXT"});
        String[] problem = admin.brokers();

        assertEquals(1, problem.length);
        assertTrue(problem[0].contains("static.kafka.admin.bootstrap.servers"), problem[0]);
        assertArrayEquals(problem, admin.logDirs(new int[] {1}));
        assertArrayEquals(problem, admin.configs("BROKER", new String[] {"1"}));
    }

    @Test
    void afterTheEndNobodyIsAsked() {
        admin.configure(new String[] {"bootstrap.servers", "127.0.0.1:1"});
        admin.close();

        assertEquals("IOException: this broker is stopping", admin.brokers()[0]);
    }
}
