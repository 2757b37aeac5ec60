package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;

/** Posts of unknown clients and the wait for them. */
class InboxTest {
    private static final ClientQuotaEntity ALICE = Inboxes.user(ConfigEntityType.USER, "alice");

    private final Inbox inbox = new Inbox();

    @Test
    void aClientThatWaitsIsNotPostedTwice() {
        for (int i = 0; i < 10; i++) inbox.postClient("alice", "a");
        assertEquals(List.of("alice/a"), Inboxes.drain(inbox));
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
    void nothingIsLostUnderManyProducers() throws InterruptedException {
        List<Thread> producers = IntStream.range(0, 4)
                .mapToObj(p -> new Thread(() -> IntStream.range(0, 5_000).forEach(i -> inbox.postClient("p" + p, "c" + i)))).toList();
        producers.forEach(Thread::start);
        Set<String> seen = new HashSet<>();
        while (producers.stream().anyMatch(Thread::isAlive) || inbox.depth() > 0) {
            inbox.take(10).clients().forEach(c -> seen.add(c.principal() + c.clientId()));
        }
        assertEquals(20_000, seen.size());
    }

    @Test
    void aPostEndsTheWait() throws InterruptedException {
        Thread producer = new Thread(() -> inbox.postClient("alice", "a"));
        producer.start();
        assertEquals(1, inbox.take(60_000).clients().size());
        producer.join();
        Thread closer = new Thread(() -> inbox.postEvent("closing", List.of()));
        closer.start();
        assertEquals("closing", inbox.take(60_000).events().get(0).kind());
        closer.join();
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

    @Test
    void aBatchIsLaidOutAsPythonReadsIt() {
        var clients = List.of(new Batch.Lookup("ü", "", 0), new Batch.Lookup("𝄞", "a\0b", 0));
        ByteBuffer in = ByteBuffer.wrap(new Batch(clients, List.of(new Batch.Event("kind", List.of("field")))).bytes());
        int[] lengths = new int[in.getInt()];
        for (int i = 0; i < lengths.length; i++) lengths[i] = in.getInt();
        String text = StandardCharsets.UTF_8.decode(in).toString();
        List<String> texts = new ArrayList<>();
        for (int at = 0, i = 0; i < lengths.length; i++) {
            int end = text.offsetByCodePoints(at, lengths[i]);
            texts.add(text.substring(at, end));
            at = end;
        }
        assertEquals(List.of("2", "ü", "", "𝄞", "a\0b", "kind", "1", "field"), texts);
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
