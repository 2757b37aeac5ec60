package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.junit.jupiter.api.Test;
import org.quotahost.Proves;

/** Tests the names and clients for which requests that were turned back are counted, and the clients' allowances. */
class TurnedBackTest {
    private static String name(AuthorizationResult first, String... topics) {
        List<AuthorizationResult> results = new ArrayList<>(Collections.nCopies(topics.length, AuthorizationResult.ALLOWED));
        results.set(0, first);
        return TurnedBack.name(FenceFixture.write(topics), results);
    }

    @Test
    void aRequestIsCountedUnderTheOnlyTopicThatKafkaAsksAboutIfOneCanHaveThatName() {
        assertEquals("a", name(AuthorizationResult.ALLOWED, "a"));
        assertEquals("b", name(AuthorizationResult.DENIED, "a", "b"));
        assertEquals(TurnedBack.SEVERAL, name(AuthorizationResult.ALLOWED, "a", "b", "c"));
        assertEquals(TurnedBack.OTHERS, name(AuthorizationResult.ALLOWED, "no topic"));
        assertEquals(TurnedBack.OTHERS, name(AuthorizationResult.ALLOWED, "a".repeat(250)));
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

    // ---- what a client may send on while it is turned back ----

    private static boolean take(int key, long bytes, double seconds) {
        return TurnedBack.allows(key, bytes, 1_000, TurnedBack.ORIGIN + (long) (seconds * 1_000_000_000L));
    }

    @Test
    void aClientMaySendWhatItHasSavedUpAndThenItsRate() {
        for (int i = 0; i < TurnedBack.SAVED_SECONDS; i++) assertTrue(take(1, 1_000, 0));
        assertFalse(take(1, 1_000, 0));
        assertFalse(take(1, 1_000, 0.9));
        assertTrue(take(1, 1_000, 1));
        assertFalse(take(1, 1_000, 1));
        assertTrue(take(2, 1_000, 1), "each has its own");
    }

    @Proves("kip-13.error-rejected")
    @Test
    void aClientThatNeverWaitsGetsItsRateAndNoMore() {
        long taken = 0;
        for (double now = 0; now < 100; now += 0.001) if (take(3, 100, now)) taken += 100;
        assertEquals(1_000 * (100 + TurnedBack.SAVED_SECONDS), taken, 200);
    }

    @Test
    void aProducerThatBacksOffAsKafkasDoIsNeverOutOfItHoweverLargeItsRequests() {
        double now = 0;
        for (double backOff = 0.1; now < 1_000; backOff = Math.min(1, 2 * backOff)) {
            assertTrue(take(4, 1_000_000, now));
            now += backOff;
        }
    }

    @Test
    void withARateOfZeroNothingIsAllowed() {
        assertFalse(TurnedBack.allows(5, 1, 0, TurnedBack.ORIGIN));
    }
}
