package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.util.BrokerConfigs;

/** An administrator's change waits for a verdict, what Kafka applies does not; a restart uses what was confirmed. */
class ReconfigurationTest {
    private static final String NAME = "client.quota.callback.static.produce";

    private final Inbox inbox = new Inbox();
    private final HostQuestions questions = new HostQuestions(inbox, Map.of(NAME, "1M"));

    private static BrokerConfigs config(String rate) {
        return new BrokerConfigs(Map.of(NAME, rate), Map.of());
    }

    /** The host's answer to the events that wait. */
    private void answer(String problem) {
        for (Batch.Event event : Inboxes.awaitEvents(inbox)) questions.answer(event.fields().get(0), problem);
    }

    @Test
    void propertiesAreThoseOfTheStartUntilTheHostHasTakenOverOthers() {
        questions.apply(config("2M"));
        assertEquals("1M", questions.confirmed().get(NAME), "nobody has waited, and nothing is confirmed yet");

        answer("");
        assertEquals("2M", questions.confirmed().get(NAME));

        questions.apply(config("fast"));
        answer("fast is no rate");
        assertEquals("2M", questions.confirmed().get(NAME), "what was refused is not for the next start");
    }

    @Test
    void anEarlierChangeThatNobodyAnsweredIsNotConfirmedByALateVerdict() {
        questions.apply(config("2M"));
        String lost = Inboxes.awaitEvents(inbox).get(0).fields().get(0);
        questions.apply(config("3M"));
        answer("");

        questions.answer(lost, "");

        assertEquals("3M", questions.confirmed().get(NAME));
    }

    @Test
    void anAdministratorHearsTheVerdictAndChangesNothingByHisQuestion() throws Exception {
        for (String problem : new String[] {"", "fast is no rate"}) {
            Thread host = new Thread(() -> answer(problem));
            host.start();
            if (problem.isEmpty()) questions.check(config("2M"));
            else assertEquals(problem,
                    assertThrows(ConfigException.class, () -> questions.check(config("fast"))).getMessage());
            host.join();
        }
        assertEquals("1M", questions.confirmed().get(NAME));
    }

    @Test
    void withoutAVerdictTheAdministratorsChangeIsRefused() {
        String message = assertThrows(ConfigException.class, () -> questions.check(config("2M"))).getMessage();

        assertTrue(message.contains("did not check the change"), message);
    }
}
