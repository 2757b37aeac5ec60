package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.quotahost.inbox.Inbox.Batch;

/** Posts of unknown clients, and what Kafka tells. */
class InboxTest {
    private static final ClientQuotaEntity ALICE = Inboxes.user(ConfigEntityType.USER, "alice");

    private final Inbox inbox = new Inbox();

    @Test
    void aClientThatWaitsIsNotPostedTwice() {
        for (int i = 0; i < 10; i++) inbox.postClient("alice", "a");
        assertEquals(List.of("alice/a"), Inboxes.drain(inbox));
    }

    @Test
    @Timeout(20)
    void aClientThatTheHostDoesNotAnswerIsPostedAgain() {
        inbox.postClient("alice", "a");
        inbox.take(0);
        long began = System.nanoTime();
        do inbox.postClient("alice", "a"); while (inbox.take(10).clients().isEmpty());
        assertTrue(System.nanoTime() - began > 900_000_000L, "not with each request");
    }

    @Test
    void beyondItsBoundAPostIsDroppedAndCounted() {
        inbox.max(5);
        for (int i = 0; i < 8; i++) inbox.postClient("alice", "client-" + i);
        assertEquals(5, inbox.depth());
        assertEquals(3, inbox.overflow());
        assertEquals(5, Inboxes.drain(inbox).size());
        assertEquals(0, inbox.depth());
    }

    @Test
    void aClientQuotaIsReportedOnceWithItsLastValueAndOnceMoreToANewHost() {
        inbox.clientQuota(ClientQuotaType.PRODUCE, ALICE, 1.0);
        inbox.clientQuota(ClientQuotaType.PRODUCE, ALICE, 2.0);
        inbox.clientQuota(ClientQuotaType.PRODUCE, ALICE, 2.0);
        assertEquals(List.of("2.0"), rates());
        inbox.clientQuota(ClientQuotaType.PRODUCE, ALICE, 2.0); // the other callback of a combined node
        assertEquals(List.of(), rates());
        inbox.replay();
        assertEquals(List.of("2.0"), rates());
        inbox.clientQuota(ClientQuotaType.PRODUCE, ALICE, null);
        assertEquals(List.of(""), rates());
        inbox.replay();
        assertEquals(List.of(), rates());
    }

    @Test
    void theClusterIsReportedAsItIsNow() {
        inbox.cluster("id", List.of("1"));
        inbox.cluster("id", List.of("1", "2"));
        assertEquals(List.of(List.of("id", "1", "2")), Inboxes.events(inbox));
    }

    private List<String> rates() {
        return inbox.take(0).events().stream().map(e -> e.fields().get(5)).toList();
    }

    @Test
    void whoIsAskedForAgainComesAfterTheNewOnesAndNoMoreAtOnceThanABatch() {
        for (int i = 0; i < 5_000; i++) inbox.askAgain(new Batch.Lookup("known-" + i, "c", 0));
        for (int i = 0; i < 5_000; i++) inbox.askAgain(new Batch.Lookup("known-" + i, "c", 0));
        inbox.postClient("new", "c");

        assertEquals("new", inbox.take(0).clients().get(0).principal());
        assertEquals(2_000, inbox.take(0).clients().size());
        assertEquals(1_000 + 2_000 - 1_999, inbox.take(0).clients().size() + 0);
        assertEquals(0, inbox.take(0).clients().size());
    }
}
