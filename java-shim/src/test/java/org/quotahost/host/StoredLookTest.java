package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;

/** When a broker is asked for the names that Kafka has stored, and what the host hears of them. */
class StoredLookTest {
    private static final String[] NO_ANSWER = {"TimeoutException: no answer"};

    private final Inbox inbox = new Inbox();
    private final Deque<String[]> replies = new ArrayDeque<>();

    private void look(boolean broker, int times) {
        StoredLook look = new StoredLook(inbox, broker, replies::remove);
        for (int i = 0; i < times; i++) look.look();
    }

    @Test
    void whatIsStoredIsToldOnceWhenTheBrokerAnswers() {
        replies.add(NO_ANSWER);
        replies.add(new String[] {"", "a", "b"});
        look(true, 3);

        assertEquals(List.of(List.of("a", "b")), Inboxes.events(inbox));
    }

    @Test
    void nothingIsToldOfNothing() {
        replies.add(new String[] {""});
        look(true, 2);

        assertEquals(List.of(), Inboxes.events(inbox));
    }

    @Test
    void whoMayNotAskStopsAsking() {
        for (int i = 0; i < 6; i++) replies.add(NO_ANSWER);
        look(true, 10);

        assertEquals(1, replies.size());
        assertEquals(List.of(), Inboxes.events(inbox));
    }

    @Test
    void aControllerAloneIsNotAsked() {
        look(false, 1);

        assertEquals(List.of(), Inboxes.events(inbox));
    }
}
