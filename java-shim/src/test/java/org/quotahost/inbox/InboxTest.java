package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.quotahost.Samples;
import org.quotahost.inbox.Inbox.Batch;

/** Tests posts of unknown clients and Kafka's reports, also while many threads post and one takes. */
@Timeout(60)
class InboxTest {
    private static final int PRODUCERS = 4;

    private final Inbox inbox = new Inbox();

    @Test
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

    /** A Python that ends repeatedly gives back what it has taken; the client's next request posts it again. */
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
        clientQuota("bob", null); // the report of a combined node's other callback
        assertEquals(List.of(), kinds());
    }

    @Test
    void aNewHostGetsAllQuotasAndTheClusterOnce() {
        clientQuota("alice", 1.0);
        clientQuota("bob", 2.0);
        inbox.cluster("id", List.of("1", "2"));
        inbox.take(0);
        clientQuota("bob", null);
        clientQuota("carol", 3.0);
        inbox.cluster("id", List.of("1"));

        inbox.replay();

        assertEquals(List.of("client-quota[PRODUCE, name, bob, , , ]", "client-quota[PRODUCE, name, carol, , , 3.0]",
                "cluster[id, 1]", "client-quota[PRODUCE, name, alice, , , 1.0]"), kinds());
    }

    /** An answer to a child process has at most Calls.MOST bytes: a million quotas at once would end each host. */
    @Test
    void manyQuotasComeAPartAtATimeAndNoClientBeforeTheHostKnowsThemAll() {
        for (int i = 0; i < 2 * Inbox.MOST_FACTS + 5; i++) clientQuota("user-" + i, 1.0);
        inbox.postClient("user-1", "new");
        inbox.askAgain(new Batch.Lookup("user-1", "known", 0));

        for (int part = 0; part < 2; part++) {
            Batch batch = inbox.take(60_000);
            assertEquals(Inbox.MOST_FACTS, batch.events().size());
            assertEquals(List.of(), batch.clients());
        }
        Batch last = inbox.take(60_000);
        assertEquals(5, last.events().size());
        assertEquals(List.of("new", "known"), last.clients().stream().map(Batch.Lookup::clientId).toList());
        inbox.replay();
        for (int events : new int[] {Inbox.MOST_FACTS, Inbox.MOST_FACTS, 5}) assertEquals(events, inbox.take(0).events().size());
    }

    private void clientQuota(String user, Double rate) {
        inbox.clientQuota(ClientQuotaType.PRODUCE, Inboxes.user(ConfigEntityType.USER, user), rate);
    }

    private List<String> kinds() {
        return inbox.take(0).events().stream().map(e -> e.kind() + e.fields()).toList();
    }

    /** Each request may have a different client-id. */
    @Test
    void namesThatWereChosenToCollideArePostedAndAskedForAsQuickly() {
        List<String> ids = Samples.ofOneHash(16);
        assertEquals(1, ids.stream().map(String::hashCode).distinct().count());

        ids.forEach(id -> inbox.postClient("mallory", id));
        ids.forEach(id -> inbox.askAgain(new Batch.Lookup("mallory", id, 0)));

        assertEquals(2 * Inbox.MOST, Inboxes.drain(inbox).size());
    }

    // ---- many threads post while one takes ----

    private static List<Thread> start(java.util.function.IntConsumer work) {
        List<Thread> threads = IntStream.range(0, PRODUCERS).mapToObj(p -> new Thread(() -> work.accept(p))).toList();
        threads.forEach(Thread::start);
        return threads;
    }

    private static void join(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) thread.join();
    }

    /** Request threads do not wait for each other, so each may exceed the bound by one. */
    @Test
    void manyProducersStayWithinTheBoundAndWhatIsDroppedIsCounted() throws InterruptedException {
        join(start(p -> IntStream.range(0, 20_000).forEach(i -> inbox.postClient("p" + p, "c" + i))));

        int depth = inbox.depth();
        assertTrue(depth >= Inbox.MOST && depth < Inbox.MOST + PRODUCERS, "depth " + depth);
        assertEquals(PRODUCERS * 20_000, depth + inbox.overflow());
        assertEquals(depth, Inboxes.drain(inbox).size());
    }

    /** Each thread's events come in the order of that thread, and the last rate of a client quota always comes. */
    @Test
    void eventsOfEachThreadKeepTheirOrderAndNoneIsLost() throws InterruptedException {
        List<Thread> producers = start(p -> IntStream.range(0, 2_000).forEach(i -> {
            inbox.postEvent("e", List.of("" + p, "" + i));
            inbox.clientQuota(ClientQuotaType.FETCH, Inboxes.user(ConfigEntityType.USER, "u" + p), i + 1.0);
        }));
        List<Batch.Event> events = new ArrayList<>();
        while (producers.stream().anyMatch(Thread::isAlive)) events.addAll(inbox.take(1).events());
        events.addAll(inbox.take(0).events());

        Map<String, Integer> next = new HashMap<>();
        Map<String, String> rates = new HashMap<>();
        for (Batch.Event event : events) {
            List<String> fields = event.fields().stream().map(String::valueOf).toList();
            if (event.kind().equals("e")) assertEquals(next.merge(fields.get(0), 1, Integer::sum) - 1, Integer.parseInt(fields.get(1)));
            else rates.put(fields.get(2), fields.get(5));
        }
        assertEquals(Map.of("0", 2_000, "1", 2_000, "2", 2_000, "3", 2_000), next);
        assertEquals(Map.of("u0", "2000.0", "u1", "2000.0", "u2", "2000.0", "u3", "2000.0"), rates);
    }

    /** The post and the start of the wait overlap in all ways. The wait is far longer than the test may take. */
    @RepeatedTest(500)
    void aWaitIsAlwaysEndedByAPost(org.junit.jupiter.api.RepetitionInfo info) throws InterruptedException {
        Thread producer = new Thread(() -> {
            for (int i = 0; i < info.getCurrentRepetition() % 50; i++) Thread.onSpinWait();
            if (info.getCurrentRepetition() % 2 == 0) inbox.postClient("alice", "a");
            else inbox.postEvent("closing", List.of());
        });
        producer.start();

        Batch batch = inbox.take(600_000);
        producer.join();

        assertTrue(batch.clients().size() + batch.events().size() + Inboxes.drain(inbox).size() == 1);
    }
}
