package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

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

        for (Executable question : List.<Executable>of(admin::brokers, () -> admin.logDirs(new int[] {1}),
                () -> admin.configs("BROKER", new String[] {"1"}))) {
            String problem = assertThrows(IOException.class, question).getMessage();
            assertTrue(problem.contains("static.kafka.admin.bootstrap.servers"), problem);
        }
    }
}
