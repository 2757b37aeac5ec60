package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;

/** Questions go to the Python host as events, and each answer finds the one who asked. */
class HostQuestionsTest {
    private final Inbox inbox = new Inbox();
    private final HostQuestions questions = new HostQuestions(inbox, Map.of());

    @Test
    void eachAnswerFindsTheOneWhoAskedInWhateverOrderTheyCome() {
        var retention = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("retention", "a,b"), 30_000));
        Batch.Event first = Inboxes.awaitEvents(inbox).get(0);
        var clients = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("clients"), 30_000));
        Batch.Event second = Inboxes.awaitEvents(inbox).get(0);
        assertEquals("question", first.kind());
        assertEquals(List.of("retention", "a,b"), first.fields().subList(1, 3));

        questions.answer(second.fields().get(0), "{}");
        questions.answer(first.fields().get(0), "[]");

        assertEquals("{}", clients.join());
        assertEquals("[]", retention.join());
    }

    @Test
    void withoutAnAnswerInTimeThereIsNoneAndTheHostDoesNotGetTheQuestionLater() {
        inbox.postEvent("stored", List.of("1")); // its field is no ticket

        assertNull(questions.ask("question", List.of("clients"), 10));

        assertEquals(List.of("stored"), Inboxes.awaitEvents(inbox).stream().map(Batch.Event::kind).toList());
    }

    @Test
    void anAnswerThatComesTooLateOrOutOfTheBlueIsForNobody() throws Exception {
        assertNull(questions.ask("question", List.of("clients"), 10));

        questions.answer("1", "late");
        questions.answer("77", "never asked");

        inbox.take(0); // the question that was taken back has woken the host for nothing
        var next = CompletableFuture.supplyAsync(() -> questions.ask("question", List.of("clients"), 30_000));
        String ticket = Inboxes.awaitEvents(inbox).get(0).fields().get(0);
        assertTrue(!ticket.equals("1") && !next.isDone());
        questions.answer(ticket, "{}");
        assertEquals("{}", next.join());
    }
}
