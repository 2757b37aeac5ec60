package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
        int before = TurnedBack.topics().size();
        for (int i = 0; i < TurnedBack.MOST_TOPICS + 50; i++) TurnedBack.add("many-" + i, 7);

        assertEquals(7, TurnedBack.of("many-0"));
        assertEquals(7 * (50 + before), TurnedBack.of(TurnedBack.OTHERS));
        assertEquals(TurnedBack.MOST_TOPICS + 1, TurnedBack.topics().size());
        TurnedBack.add("many-0", 1);
        assertEquals(8, TurnedBack.of("many-0"), "a topic that is known keeps its name");
    }

    @Test
    void aFloodOfClientsMakesPlaceForOthersOnceItsOwnAreOldThoughNobodyLists() {
        TurnedBack.clients.clear();
        long now = System.nanoTime() / 1_000_000 + 10_000;
        for (int i = 0; i < TurnedBack.MOST_CLIENTS; i++) TurnedBack.note("mallory", "c" + i, false, now);
        TurnedBack.note("alice", "app", true, now + TurnedBack.LATELY_MS);
        assertEquals(TurnedBack.MOST_CLIENTS, TurnedBack.clients.size(), "all places are taken");
        assertFalse(TurnedBack.clients.containsKey(new TurnedBack.Names("alice", "app")));
        TurnedBack.note("alice", "app", true, now + TurnedBack.LATELY_MS + 1_001);
        assertEquals(1, TurnedBack.clients.size());
        assertTrue(TurnedBack.clients.containsKey(new TurnedBack.Names("alice", "app")));
    }

    @Test
    void whoHasTurnedAClientBackIsTheLastThatDid() {
        TurnedBack.clients.clear();
        assertEquals("", TurnedBack.by("alice", "app"));
        TurnedBack.note("alice", "app", true);
        assertEquals("topics", TurnedBack.by("alice", "app"));
        TurnedBack.note("alice", "app", false);
        assertEquals("fence", TurnedBack.by("alice", "app"));
        assertFalse(TurnedBack.byTopics("alice", "app"));
        assertEquals(1, TurnedBack.lately().size());
    }
}
