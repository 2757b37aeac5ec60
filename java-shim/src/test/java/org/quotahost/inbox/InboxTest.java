package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.quotahost.inbox.Inbox.Batch;

/** Posts of unknown clients, and what Kafka tells. */
class InboxTest {
    private final Inbox inbox = new Inbox();

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
    void whoIsAskedForAgainComesAfterTheNewOnesAndNoMoreAtOnceThanABatch() {
        for (int i = 0; i < 5_000; i++) inbox.askAgain(new Batch.Lookup("known-" + i, "c", 0));
        for (int i = 0; i < 5_000; i++) inbox.askAgain(new Batch.Lookup("known-" + i, "c", 0));
        inbox.postClient("new", "c");

        assertEquals("new", inbox.take(0).clients().get(0).principal());
        assertEquals(2_000, inbox.take(0).clients().size());
        assertEquals(1_000 + 2_000 - 1_999, inbox.take(0).clients().size() + 0);
        assertEquals(0, inbox.take(0).clients().size());
    }

    /** A Python that ends again and again gives back what it has taken; a client's next request posts it again. */
    @Test
    void ofThePostsThatComeBackNoMoreAreKeptThanOfNewOnes() {
        for (int i = 0; i < Inbox.MOST + 5_000; i++) inbox.askAgain(new Batch.Lookup("new-" + i, "c", 1));
        inbox.askAgain(new Batch.Lookup("known", "c", 0));

        assertEquals(5_000, inbox.overflow());
        List<String> kept = Inboxes.drain(inbox);
        assertEquals(Inbox.MOST + 1, kept.size());
        assertEquals("known/c", kept.get(Inbox.MOST));
    }

    @Test
    void clientsComeInTheOrderOfTheirFirstRequest() {
        for (String id : List.of("c", "a", "b", "a")) inbox.postClient("alice", id);

        assertEquals(List.of("alice/c", "alice/a", "alice/b"), Inboxes.drain(inbox));
    }

    @Test
    void clientQuotasComeBeforeOtherEventsInTheOrderInWhichTheyWereFirstSet() {
        inbox.postEvent("reconfigure", List.of("x"));
        clientQuota("bob", 1.0);
        clientQuota("alice", 2.0);
        clientQuota("bob", 3.0);

        assertEquals(List.of("client-quota[PRODUCE, name, bob, , , 3.0]", "client-quota[PRODUCE, name, alice, , , 2.0]",
                "reconfigure[x]"), kinds());
    }

    @Test
    void aUserNamedLikeTheDefaultIsNotTheDefault() {
        inbox.clientQuota(ClientQuotaType.PRODUCE, Inboxes.user(ConfigEntityType.USER, "<default>"), 1.0);
        inbox.clientQuota(ClientQuotaType.PRODUCE, Inboxes.user(ConfigEntityType.DEFAULT_USER, "<default>"), 2.0);

        assertEquals(List.of("client-quota[PRODUCE, name, <default>, , , 1.0]", "client-quota[PRODUCE, default, , , , 2.0]"),
                kinds());
    }

    @Test
    void aQuotaThatWasSetAndRemovedBetweenTwoTakesIsReportedAsRemoved() {
        clientQuota("bob", 1.0);
        clientQuota("bob", null);

        assertEquals(List.of("client-quota[PRODUCE, name, bob, , , ]"), kinds());
        clientQuota("bob", null); // the other callback of a combined node
        assertEquals(List.of(), kinds());
    }

    @Test
    void aNewHostGetsAllQuotasAndTheClusterOnce() {
        clientQuota("alice", 1.0);
        clientQuota("bob", 2.0);
        clientQuota("bob", null);
        inbox.cluster("id", List.of("1", "2"));
        inbox.take(0);
        clientQuota("carol", 3.0);
        inbox.cluster("id", List.of("1"));

        inbox.replay();

        assertEquals(List.of("client-quota[PRODUCE, name, carol, , , 3.0]", "cluster[id, 1]",
                "client-quota[PRODUCE, name, alice, , , 1.0]"), kinds());
    }

    @Test
    void theClusterThatBothCallbacksOfANodePostIsOneEvent() {
        inbox.cluster("id", List.of("1"));
        inbox.cluster("id", List.of("1", "2"));
        assertEquals(List.of("cluster[id, 1, 2]"), kinds());
        inbox.cluster("id", List.of("1", "2"));
        assertEquals(List.of(), kinds());
    }

    private void clientQuota(String user, Double rate) {
        inbox.clientQuota(ClientQuotaType.PRODUCE, Inboxes.user(ConfigEntityType.USER, user), rate);
    }

    private List<String> kinds() {
        return inbox.take(0).events().stream().map(e -> e.kind() + e.fields()).toList();
    }
}
