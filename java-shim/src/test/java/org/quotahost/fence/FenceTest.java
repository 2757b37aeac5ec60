package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.QuotaFence;
import org.quotahost.util.LineLimit;
import org.quotahost.util.LogCapture;

/** Tests which clients a closed fence turns back, and with which error. */
@ExtendWith(FenceFixture.Reset.class)
class FenceTest {
    /** Stands for the forms in exemptions.py; the host's unit tests use the real ones. */
    private static final String INTERNAL = "broker-#-*|raft-client-#|__x_#_producer|quotahost-#|quotahost-pipeline";

    private static final List<AuthorizationResult> ALLOWED = List.of(AuthorizationResult.ALLOWED);

    private final QuotaFence fence = FenceFixture.fence("none", Map.of());

    @BeforeEach
    void closed() {
        logged(true, true, false, null);
    }

    private List<AuthorizationResult> produce(String user, String clientId) {
        return fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, user, clientId), FenceFixture.write("t"));
    }

    private List<AuthorizationResult> produce(KafkaPrincipal principal) {
        return fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, principal, "app"), FenceFixture.write("t"));
    }

    private List<AuthorizationResult> produceTo(String... topics) {
        return fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write(topics));
    }

    private void assertTurnedBack(String user, String clientId) {
        assertThrows(FenceFixture.PAUSED, () -> produce(user, clientId), user + "/" + clientId);
    }

    @Test
    void inShadowItOnlyCounts() {
        logged(true, true, true, null);
        long before = Fence.shadowed.sum();

        assertEquals(ALLOWED, produce("alice", "app"));

        assertEquals(before + 1, Fence.shadowed.sum());
    }

    static Stream<ApiKeys> everyOtherRequestGoesOn() {
        return Stream.of(ApiKeys.values()).filter(key -> key != ApiKeys.PRODUCE && key.hasValidVersion());
    }

    @ParameterizedTest
    @MethodSource
    void everyOtherRequestGoesOn(ApiKeys key) {
        assertEquals(ALLOWED, fence.authorize(FenceFixture.from(key, "alice", "app"), FenceFixture.write("t")));
    }

    @Test
    void exemptPrincipalsGoOnUnderAnyClientIdAndOthersDoNot() {
        Exemptions.set(Map.of("root", "excluded", "CN=b,OU=c", "broker"), new String[] {"quotahost-1"}, "");

        assertEquals(ALLOWED, produce("root", "x"));
        assertEquals(ALLOWED, produce("CN=b,OU=c", ""));
        assertEquals(ALLOWED, produce("ANONYMOUS", "quotahost-1"), "the plugins' own client alone may be anonymous");
        assertTurnedBack("alice", "quotahost-1");
        assertTurnedBack("ANONYMOUS", "1");
        assertTurnedBack("ANONYMOUS", "broker-1-fetcher-0");
        assertTurnedBack("ANONYMOUS", null);
        assertTurnedBack("ANONYMOUS", ""); // if brokers authenticate, no form of a client-id is exempt, nor the empty one
        assertEquals(ALLOWED, produce("root", null));
        Exemptions.set(Map.of("boss", "excluded"), new String[0], "");
        assertTurnedBack("root", "x");
        assertEquals(ALLOWED, produce("boss", "x"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1", "quotahost-1", "quotahost-pipeline", "broker-1-fetcher-0", "broker-12-to-controller-x", "raft-client-3", "__x_12_producer"})
    void whereBrokersAreAnonymousTheyGoByClientId(String clientId) {
        Exemptions.set(Map.of(), new String[] {"1", "quotahost-1"}, INTERNAL);

        assertEquals(ALLOWED, produce("ANONYMOUS", clientId));
        assertTurnedBack("alice", clientId);
    }

    @ParameterizedTest
    @ValueSource(strings = {"2", "", "broker-x-fetcher", "broker-1-", "my-broker-1-a", "raft-client-", "raft-client-3x", "raft-client-\u0663",
        "__x_1_", "__x__producer", "__x_1_producer2", "quotahost-pipelines", "1 "})
    void otherAnonymousClientsAreTurnedBack(String clientId) {
        Exemptions.set(Map.of(), new String[] {"1", "quotahost-1"}, INTERNAL);

        assertTurnedBack("ANONYMOUS", clientId);
    }

    @Test
    void anExemptNameCountsWithItsType() {
        Exemptions.set(Map.of("alice", "excluded"), new String[] {"1"}, INTERNAL);

        assertEquals(ALLOWED, produce(new KafkaPrincipal("User", "alice")));
        assertThrows(FenceFixture.PAUSED, () -> produce(new KafkaPrincipal("Group", "alice")));
        assertFalse(Exemptions.exempt(new KafkaPrincipal("Group", "alice"), "app"));
        assertFalse(Exemptions.exempt(new KafkaPrincipal("Group", "ANONYMOUS"), "1"));
    }

    @Test
    void superUsersPassAndKeepTheirQuotas() throws IOException {
        var users = Map.of("process.roles", "broker", "super.users", "User:root; Role:admins;User:ANONYMOUS;User:CN=b,OU=c;;");
        try (QuotaFence secured = FenceFixture.fence("none", users)) {
            assertEquals(ALLOWED, produce("root", "x"));
            assertEquals(ALLOWED, produce("CN=b,OU=c", "x"));
            assertEquals(ALLOWED, produce(new KafkaPrincipal("Role", "admins")));
            assertThrows(FenceFixture.PAUSED, () -> produce(new KafkaPrincipal("Role", "root")));
            assertTurnedBack("admins", "x");
            assertTurnedBack("ANONYMOUS", "x"); // like all clients that do not authenticate
            assertTrue(Exemptions.passes("root", "x"));
            assertFalse(Exemptions.exempt(new KafkaPrincipal("User", "root"), "x"));
        }
    }

    /** As in StandardAuthorizer, a principal of a builder's own class counts by its type and name. */
    @Test
    void aSuperUserIsKnownByTypeAndNameWhateverItsPrincipalPrints() throws IOException {
        KafkaPrincipal root = new KafkaPrincipal("User", "root") {
            @Override
            public String toString() {
                return "root, by token 17";
            }
        };
        try (QuotaFence secured = FenceFixture.fence("none", Map.of("process.roles", "broker", "super.users", "User:root"))) {
            assertEquals(ALLOWED, produce(root));
        }
    }

    @Test
    void topicQuotasHoldForSuperUsersToo() throws IOException {
        RuntimeException over = new IllegalStateException("over");
        Fence.turnBack((context, actions, results) -> over);
        try (QuotaFence secured = FenceFixture.fence("none", Map.of("process.roles", "broker", "super.users", "User:root"))) {
            assertSame(over, assertThrows(IllegalStateException.class, () -> produce("root", "x")));
            Fence.state(false, false, false, null, 0);
            assertSame(over, assertThrows(IllegalStateException.class, () -> produce("root", "x")));
        }
    }

    @Test
    void aSparedTopicIsWrittenToByAnybodyButCarriesNoOtherAlong() {
        Exemptions.spare(new String[] {"__remote_log_metadata"});
        List<AuthorizationResult> both = List.of(AuthorizationResult.ALLOWED, AuthorizationResult.ALLOWED);

        assertEquals(ALLOWED, produceTo("__remote_log_metadata"));
        assertThrows(FenceFixture.PAUSED, () -> produceTo("__remote_log_metadata", "t"));
        assertThrows(FenceFixture.PAUSED, () -> produceTo("t", "__remote_log_metadata"));
        Exemptions.spare(new String[0]);
        assertThrows(FenceFixture.PAUSED, () -> produceTo("__remote_log_metadata"));
        Fence.state(false, false, false, null, 0);
        assertEquals(both, produceTo("__remote_log_metadata", "t"));
    }

    /** Sets a state, and lets the log's thread report it. */
    private static void logged(boolean paused, boolean turnsBack, boolean shadow, Fence.Affected affected) {
        Fence.state(paused, turnsBack, shadow, affected, 0);
        Fence.logState();
    }

    @Test
    void theLogTellsThatAClosedFenceOnlyCountsFromNowOnOrHoldsTopicsAlone() {
        Fence.lines = new LineLimit(Fence.LINES_PER_MINUTE);
        logged(true, true, false, null);
        assertEquals(1, LogCapture.lines(LogCapture.during(() -> logged(true, true, true, null)), "are only counted"));
        assertEquals(1, LogCapture.lines(LogCapture.during(() -> logged(false, true, false, (who, id, topic) -> null)),
                "to held topics get"));
    }

    @Test
    void aFenceThatFluttersWritesABoundedNumberOfLinesAndThenTheLastState() {
        assertEquals("", LogCapture.during(() -> logged(true, true, false, null)), "it is closed");
        assertEquals("", LogCapture.during(() -> Fence.state(false, false, false, null, 0)), "the watch waits for no log");
        assertEquals(1, LogCapture.lines(LogCapture.during(() -> logged(false, false, false, null)), "The fence is open"));
        assertEquals("", LogCapture.during(() -> logged(false, false, false, null)));
        logged(true, true, false, null);
        long[] now = {0};
        Fence.lines = new LineLimit(Fence.LINES_PER_MINUTE, () -> now[0]);
        assertEquals(Fence.LINES_PER_MINUTE, LogCapture.during(() -> {
            for (int i = 0; i < 10_000; i++) logged(i % 2 == 1, i % 2 == 1, false, null);
        }).lines().count());
        now[0] += 60_000_000_000L;
        logged(false, false, false, null);
        assertEquals(1, LogCapture.lines(LogCapture.during(() -> logged(true, true, false, null)), "The fence is closed"));
        assertEquals(0, LogCapture.during(() -> logged(true, true, false, null)).lines().count());
    }

    /** A broker's fence stays installed until the host ends: otherwise a broker that stops would report the end of a PAUSE. */
    @Test
    void itIsInstalledByAFenceOfABrokerWhichKafkaClosesEarly() throws IOException {
        Fence.uninstall();
        assertFalse(Fence.closed());
        new QuotaFence().close();
        FenceFixture.fence("none", Map.of("process.roles", "controller"));
        assertFalse(Fence.installed());
        FenceFixture.fence("none", Map.of("process.roles", "broker")).close();
        assertTrue(Fence.installed());
        assertEquals("", LogCapture.during(() -> logged(true, true, false, null)), "it is closed already");
    }

    /** Kafka's authorizer may outlive the host in this JVM, and would keep the host's table. */
    @Test
    void itTellsAnEndedHostNothing() {
        List<String> told = new ArrayList<>();
        Fence.addresses(context -> told.add(context.clientId()));
        fence.authorize(FenceFixture.from(ApiKeys.FETCH, "alice", "app"), FenceFixture.write("t"));
        Fence.uninstall();
        fence.authorize(FenceFixture.from(ApiKeys.FETCH, "alice", "later"), FenceFixture.write("t"));
        assertEquals(List.of("app"), told);
    }
}
