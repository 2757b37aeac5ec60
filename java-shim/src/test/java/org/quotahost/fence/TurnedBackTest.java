package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Set;
import org.junit.jupiter.api.Test;

/** Under which name the bytes of a turned back request are counted, and of how many clients it is known. */
class TurnedBackTest {
    @Test
    void aTopicIsCountedUnderTheNameInTheRequestOrElseTheOnlyOneThatKafkaAsksAbout() {
        assertEquals("a", TurnedBack.name("a", 2, Set.of("a", "b")));
        assertEquals("a", TurnedBack.name("", 1, Set.of("a")));
        assertEquals(TurnedBack.SEVERAL, TurnedBack.name("", 2, Set.of("a", "b")));
        assertEquals(TurnedBack.SEVERAL, TurnedBack.name("", 2, Set.of("a")), "an id that Kafka doesn't know");
    }

    @Test
    void aTopicToWhichTheClientMayNotWriteIsNotCounted() {
        assertNull(TurnedBack.name("invented", 2, Set.of("a")));
    }

    @Test
    void aNameThatNoTopicCanHaveIsNotKept() {
        assertEquals(TurnedBack.OTHERS, TurnedBack.name("no topic", 1, Set.of("no topic")));
        String tooLong = "a".repeat(250);
        assertEquals(TurnedBack.OTHERS, TurnedBack.name(tooLong, 1, Set.of(tooLong)));
    }

    @Test
    void namesBeyondTheBoundAreCountedTogether() {
        int before = TurnedBack.bytes.size();
        for (int i = 0; i < TurnedBack.MOST_TOPICS + 50; i++) TurnedBack.add("many-" + i, 7);

        assertEquals(7, TurnedBack.bytes.get("many-0").sum());
        assertEquals(7 * (50 + before), TurnedBack.bytes.get(TurnedBack.OTHERS).sum());
        assertEquals(TurnedBack.MOST_TOPICS + 1, TurnedBack.bytes.size());
        TurnedBack.add("many-0", 1);
        assertEquals(8, TurnedBack.bytes.get("many-0").sum(), "a topic that is known keeps its name");
    }

    private static void note(String principal, String clientId, String by, long nanos) {
        TurnedBack.note(new TurnedBack.Client(principal, clientId), new TurnedBack.Last(by, nanos));
    }

    @Test
    void aFloodOfClientsMakesPlaceForOthersOnceItsOwnAreOld() {
        TurnedBack.clients.clear();
        long now = System.nanoTime();
        for (int i = 0; i < TurnedBack.MOST_CLIENTS; i++) note("mallory", "c" + i, "fence", now);
        TurnedBack.forgetOld(now + TurnedBack.LATELY_NANOS);
        note("alice", "app", "topics", now);
        assertEquals(TurnedBack.MOST_CLIENTS, TurnedBack.clients.size(), "all places are taken");
        assertEquals("", TurnedBack.by("alice", "app"));
        TurnedBack.forgetOld(now + TurnedBack.LATELY_NANOS + 1);
        note("alice", "app", "topics", now);
        assertEquals(1, TurnedBack.clients.size());
    }
}
