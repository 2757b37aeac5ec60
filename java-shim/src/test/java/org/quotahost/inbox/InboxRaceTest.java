package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class InboxRaceTest {
    private static final int PRODUCERS = 4;

    private final Inbox inbox = new Inbox();

    private static List<Thread> start(java.util.function.IntConsumer work) {
        List<Thread> threads = IntStream.range(0, PRODUCERS).mapToObj(p -> new Thread(() -> work.accept(p))).toList();
        threads.forEach(Thread::start);
        return threads;
    }

    private static void join(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) thread.join();
    }

    /** A request thread doesn't wait, so each may go one above the bound. */
    @Test
    void manyProducersStayWithinTheBoundAndWhatIsDroppedIsCounted() throws InterruptedException {
        inbox.max(1_000);

        join(start(p -> IntStream.range(0, 5_000).forEach(i -> inbox.postClient("p" + p, "c" + i))));

        int depth = inbox.depth();
        assertTrue(depth >= 1_000 && depth < 1_000 + PRODUCERS, "depth " + depth);
        assertEquals(PRODUCERS * 5_000, depth + inbox.overflow());
        assertEquals(depth, Inboxes.drain(inbox).size());
    }

    /** Each thread's events in its own order; the last word on a client quota is never lost. */
    @Test
    void eventsOfEachThreadKeepTheirOrderAndNoneIsLost() throws InterruptedException {
        List<Thread> producers = start(p -> IntStream.range(0, 2_000).forEach(i -> {
            inbox.postEvent("e", List.of("" + p, "" + i));
            inbox.clientQuota(new ClientQuotas.Key(ClientQuotaType.FETCH, "name", "u" + p, "", ""), i + 1.0);
        }));
        List<Batch.Event> told = new ArrayList<>();
        while (producers.stream().anyMatch(Thread::isAlive)) told.addAll(inbox.take(1).events());
        told.addAll(inbox.take(0).events());

        Map<String, Integer> next = new HashMap<>();
        Map<String, String> rates = new HashMap<>();
        for (Batch.Event event : told) {
            List<String> fields = event.fields();
            if (event.kind().equals("e")) assertEquals(next.merge(fields.get(0), 1, Integer::sum) - 1, Integer.parseInt(fields.get(1)));
            else rates.put(fields.get(2), fields.get(5));
        }
        assertEquals(Map.of("0", 2_000, "1", 2_000, "2", 2_000, "3", 2_000), next);
        assertEquals(Map.of("u0", "2000.0", "u1", "2000.0", "u2", "2000.0", "u3", "2000.0"), rates);
    }

    /** However the post and the start of the wait meet: the wait is far longer than the test may take. */
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
