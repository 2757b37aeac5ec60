package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.internals.Internals;
import org.quotahost.internals.InternalsFixture;
import org.quotahost.internals.Mute;

/** Tests which look-up of a request quota gets the muting limit after the fence has turned a request back. */
@ExtendWith(FenceFixture.Reset.class)
class MuteTest {
    private static final Map<String, String> MUTED = Map.of("user", "<turned back>", "client-id", "");

    private final KafkaPrincipal alice = new KafkaPrincipal("User", "alice");
    private final QuotaFence fence = FenceFixture.fence("none", Map.of());
    private final PythonQuotaCallback callback = new PythonQuotaCallback();

    private final ProduceRequest request = new ProduceRequest(new ProduceRequestData().setAcks((short) 1),
            ApiKeys.PRODUCE.latestVersion());

    @BeforeEach
    void close() {
        Fence.state(true, true, false, null, 0);
        InternalsFixture.handles(request);
    }

    private void turnBack() {
        assertThrows(FenceFixture.PAUSED, () -> fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, alice, "app"),
                FenceFixture.write("t")));
    }

    private Map<String, String> look(ClientQuotaType type) {
        return callback.quotaMetricTags(type, alice, "app");
    }

    @Test
    void theNextLookUpOfTheRequestQuotaMutesAndThoseAfterItAreTheClientsOwn() {
        turnBack();
        assertNotEquals(MUTED, look(ClientQuotaType.PRODUCE));
        Map<String, String> tags = look(ClientQuotaType.REQUEST);
        assertEquals(MUTED, tags);
        assertEquals(List.of("user", "client-id"), new ArrayList<>(tags.keySet()), "Kafka names its sensor by this order");
        assertTrue(callback.quotaLimit(ClientQuotaType.REQUEST, Map.copyOf(tags)) < 1e-6);
        assertNotEquals(MUTED, look(ClientQuotaType.REQUEST));
    }

    @Test
    void aMutedRequestKeepsNoRecordsInTheHeap() {
        turnBack();
        assertThrows(IllegalStateException.class, request::data);
        assertEquals(0, request.getErrorResponse(1_000, FenceFixture.error()).data().responses().size(), "it can be answered");
    }

    @Test
    void whereKafkaDoesNotTellTheRequestNobodyIsMutedSinceItsRecordsWouldStay() {
        InternalsFixture.handles(null);
        turnBack();
        assertNotEquals(MUTED, look(ClientQuotaType.REQUEST));
    }

    @Test
    void otherRequestsAreNotMuted() throws InterruptedException {
        turnBack();
        var elsewhere = new ArrayList<Map<String, String>>();
        Thread thread = new Thread(() -> elsewhere.add(look(ClientQuotaType.REQUEST)));
        thread.start();
        thread.join();
        assertNotEquals(MUTED, elsewhere.get(0), "another thread handles another request");
        assertNotEquals(MUTED, callback.quotaMetricTags(ClientQuotaType.REQUEST, new KafkaPrincipal("User", "bob"), "app"));
    }

    @Test
    void aMarkThatKafkaDidNotAskAboutIsGoneWithTheThreadsNextRequest() {
        turnBack();
        assertFalse(Internals.MUTE.missing());
        fence.authorize(FenceFixture.from(ApiKeys.FETCH, alice, "app"), FenceFixture.write("t"));
        assertNotEquals(MUTED, look(ClientQuotaType.REQUEST));
        assertTrue(Internals.MUTE.missing(), "a gauge and the log show that muting does not work");
    }

    @Test
    void aConnectionWithManySmallRequestsIsMutedOnceForEachMegabyteOfThemAndNotForEachRequest() {
        InternalsFixture.handles(new ProduceRequest(new ProduceRequestData(), ApiKeys.PRODUCE.latestVersion()), 1_000);
        for (int mute = 0; mute < 2; mute++) {
            long before = Mute.count.sum();
            for (int i = 1; i < 1_000; i++) turnBack();
            assertEquals(before, Mute.count.sum());
            turnBack();
            assertEquals(before + 1, Mute.count.sum());
            assertEquals(MUTED, look(ClientQuotaType.REQUEST));
            InternalsFixture.handles(new ProduceRequest(new ProduceRequestData(), ApiKeys.PRODUCE.latestVersion()), 1_000);
        }
    }

    @Test
    void inShadowNobodyIsMuted() {
        Fence.state(true, true, true, null, 0);
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, alice, "app"), FenceFixture.write("t"));
        assertNotEquals(MUTED, look(ClientQuotaType.REQUEST));
    }

    @Test
    void aLookUpWithoutAMarkAllocatesNothingMore() {
        turnBack();
        look(ClientQuotaType.REQUEST);
        assertEquals(0, FenceFixture.bytesPerCall(() -> Mute.isFor(alice)));
    }
}
