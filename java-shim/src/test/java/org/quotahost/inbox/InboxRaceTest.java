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
import org.quotahost.inbox.Inbox.Batch;

/** Many threads post while one takes. */
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

    /** A request thread does not wait for the others, so each may exceed the bound by one. */
    @Test
    void manyProducersStayWithinTheBoundAndWhatIsDroppedIsCounted() throws InterruptedException {
        join(start(p -> IntStream.range(0, 20_000).forEach(i -> inbox.postClient("p" + p, "c" + i))));

        int depth = inbox.depth();
        assertTrue(depth >= Inbox.MOST && depth < Inbox.MOST + PRODUCERS, "depth " + depth);
        assertEquals(PRODUCERS * 20_000, depth + inbox.overflow());
        assertEquals(depth, Inboxes.drain(inbox).size());
    }

    /** Each thread's events come in its own order, and the last rate of a client quota always comes. */
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

    /** The post and the start of the wait meet in all ways; the wait is far longer than the test may take. */
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
