package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;
import org.quotahost.python.StartException;
import org.quotahost.util.BrokerConfigs;

/** An administrator's change waits for a verdict, what Kafka applies does not; a restart uses what was confirmed. */
class ReconfigurationTest {
    private static final String NAME = "client.quota.callback.static.produce";

    private final Inbox inbox = new Inbox();
    private final Reconfiguration reconfiguration = new Reconfiguration(new HostQuestions(inbox), Map.of(NAME, "1M"));

    private static BrokerConfigs config(String rate) {
        return new BrokerConfigs(Map.of(NAME, rate), Map.of());
    }

    /** The host's answer to the events that wait. */
    private void answer(String problem) {
        for (Batch.Event event : Inboxes.awaitEvents(inbox)) reconfiguration.verdict(event.fields().get(0), problem);
    }

    @Test
    void propertiesAreThoseOfTheStartUntilTheHostHasTakenOverOthers() {
        reconfiguration.apply(config("2M"));
        assertEquals("1M", reconfiguration.confirmed().get(NAME), "nobody has waited, and nothing is confirmed yet");

        answer(null);
        assertEquals("2M", reconfiguration.confirmed().get(NAME));

        reconfiguration.apply(config("fast"));
        answer("fast is no rate");
        assertEquals("2M", reconfiguration.confirmed().get(NAME), "what was refused is not for the next start");
    }

    @Test
    void anEarlierChangeThatNobodyAnsweredIsNotConfirmedByALateVerdict() {
        reconfiguration.apply(config("2M"));
        String lost = Inboxes.awaitEvents(inbox).get(0).fields().get(0);
        reconfiguration.apply(config("3M"));
        answer(null);

        reconfiguration.verdict(lost, null);

        assertEquals("3M", reconfiguration.confirmed().get(NAME));
    }

    @Test
    void anAdministratorHearsTheVerdictAndChangesNothingByHisQuestion() throws Exception {
        for (String problem : new String[] {null, "fast is no rate"}) {
            Thread host = new Thread(() -> answer(problem));
            host.start();
            if (problem == null) reconfiguration.check(config("2M"));
            else assertEquals(problem,
                    assertThrows(StartException.class, () -> reconfiguration.check(config("fast"))).getMessage());
            host.join();
        }
        assertEquals("1M", reconfiguration.confirmed().get(NAME));
    }

    @Test
    void withoutAVerdictTheAdministratorsChangeIsRefused() {
        String message = assertThrows(StartException.class, () -> reconfiguration.check(config("2M"))).getMessage();

        assertTrue(message.contains("did not check the change"), message);
    }
}
