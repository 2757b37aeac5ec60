package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.inbox.Inboxes;
import org.quotahost.util.BrokerConfigs;

/** Questions go to Python as events, each answer reaches its asker, and an administrator's change waits for a verdict. */
class QuestionsTest {
    private static final String NAME = "client.quota.callback.static.produce";

    private final PythonHost host = new PythonHost(config("1M"));
    private final Inbox inbox = host.inbox;
    private final Questions questions = host.questions;

    private static String ticket(Batch.Event event) {
        return String.valueOf(event.fields().get(0));
    }

    @Test
    void eachAnswerFindsTheOneWhoAskedInWhateverOrderTheyCome() {
        var retention = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("retention", "a,b"), 30_000));
        Batch.Event first = Inboxes.awaitEvents(inbox).get(0);
        var clients = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("clients"), 30_000));
        Batch.Event second = Inboxes.awaitEvents(inbox).get(0);
        assertEquals("question", first.kind());
        assertEquals(List.of("retention", "a,b"), first.fields().subList(1, 3));

        questions.answer(ticket(second), "{}");
        questions.answer(ticket(first), "[]");

        assertEquals("{}", clients.join());
        assertEquals("[]", retention.join());
    }

    @Test
    void withoutAnAnswerInTimeThereIsNoneAndTheHostDoesNotGetTheQuestionLater() {
        inbox.postEvent("stored", List.of("1")); // its field is not a ticket

        assertNull(questions.ask("question", List.of("clients"), 10));

        assertEquals(List.of("stored"), Inboxes.awaitEvents(inbox).stream().map(Batch.Event::kind).toList());
    }

    /** All code in a JVM shares Java's thread for timeouts, and a full heap ends that thread. */
    @Test
    @Timeout(30)
    void whoAsksDoesNotDependOnJavasThreadForTimeouts() {
        var goesOn = new CountDownLatch(1);
        CompletableFuture.delayedExecutor(0, TimeUnit.MILLISECONDS, Runnable::run).execute(() -> {
            try {
                goesOn.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        var asked = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("clients"), 10));
        try {
            assertDoesNotThrow(() -> asked.get(20, TimeUnit.SECONDS));
        } finally {
            goesOn.countDown();
        }
        assertNull(asked.join());
    }

    @Test
    void anAnswerThatComesTooLateOrOutOfTheBlueIsForNobody() throws Exception {
        assertNull(questions.ask("question", List.of("clients"), 10));

        questions.answer("1", "late");
        questions.answer("77", "never asked");

        inbox.take(0); // the withdrawn question has woken the host
        var next = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("clients"), 30_000));
        String ticket = ticket(Inboxes.awaitEvents(inbox).get(0));
        assertTrue(!ticket.equals("1") && !next.isDone());
        questions.answer(ticket, "{}");
        assertEquals("{}", next.join());
    }

    private static BrokerConfigs config(String rate) {
        return new BrokerConfigs(Map.of(NAME, rate), Map.of());
    }

    /** Lets the host answer the events that wait. */
    private void answer(String problem) {
        for (Batch.Event event : Inboxes.awaitEvents(inbox)) questions.answer(ticket(event), problem);
    }

    @Test
    void withoutAVerdictTheAdministratorsChangeIsRefused() {
        String message = assertThrows(ConfigException.class, () -> questions.check(config("2M"))).getMessage();

        assertTrue(message.contains("did not check the change"), message);
        assertTrue(message.contains("a plugin hangs"), message);
    }
}
