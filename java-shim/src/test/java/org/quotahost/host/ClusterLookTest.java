package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inboxes;

/** From whom the host hears which brokers are alive. */
class ClusterLookTest {
    private final Inbox inbox = new Inbox();
    private final AtomicInteger asked = new AtomicInteger();

    /** A look at a cluster that gives this reply. */
    private ClusterLook look(String... reply) {
        return new ClusterLook(inbox, () -> {
            asked.incrementAndGet();
            return reply;
        }, new StoredLook(inbox, false, () -> reply));
    }

    @Test
    void aKafkaThatDoesNotTellIsAskedAndNothingIsToldTwice() {
        ClusterLook look = look("", "the-cluster", "1", "10", "2");
        look.look();
        look.look();

        assertEquals(List.of(List.of("the-cluster", "1", "10", "2")), Inboxes.events(inbox));
        assertEquals(2, asked.get());
    }

    @Test
    void aKafkaThatTellsIsNeverAsked() {
        ClusterLook look = look("", "the-cluster", "1");
        look.news("the-cluster", List.of("1", "2"));
        look.look();

        assertEquals(List.of(List.of("the-cluster", "1", "2")), Inboxes.events(inbox));
        assertEquals(0, asked.get());
    }

    @Test
    void withoutAnAnswerNothingIsTold() {
        look("TimeoutException: no answer").look();

        assertEquals(List.of(), Inboxes.events(inbox));
    }
}
