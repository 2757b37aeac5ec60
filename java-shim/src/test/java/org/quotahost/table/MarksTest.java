package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The marks are bounded by number and by the length of names, and each ends. */
class MarksTest {
    private static final int MOST = 5_000;

    private final Marks marks = new Marks(() -> MOST);
    private final List<String> ended = new ArrayList<>();

    private void sweep(int beat, String... affected) {
        marks.now(beat);
        marks.sweep(List.of(affected)::contains, (principal, clientId) -> ended.add(principal + " " + clientId));
    }

    @Test
    void aMarkIsAClientsAndNamesTheTopicThatItAskedForLast() {
        marks.mark("alice", "a", "t");
        marks.mark("alice", "a", "u");

        assertEquals("u", marks.topic("alice", "a"));
        assertNull(marks.topic("alice", "b"));
        assertNull(marks.topic("bob", "a"));
        assertEquals(2, marks.size()); // the principal and the client-id
        marks.mark("bob", "b\tc", "t");
        assertEquals(Set.of(List.of("alice", "a", "u"), List.of("bob", "b\tc", "t")),
                marks.list(10).stream().map(List::of).collect(Collectors.toSet()));
        assertEquals(1, marks.list(1).size());
    }

    @Test
    void itEndsWithItsTopicOrWhenNobodyRenewsIt() {
        marks.mark("alice", "a", "t");
        marks.mark("alice", "b", "u");
        sweep(1, "t");
        assertEquals(List.of("alice b"), ended);

        marks.mark("alice", "a", "t");
        sweep(1 + Marks.LIFE_BEATS, "t");
        assertTrue(marks.has("alice", "a"));
        sweep(2 + Marks.LIFE_BEATS, "t");
        assertFalse(marks.has("alice", "a"));
        assertEquals(0, marks.size());
    }

    @Test
    void aPrincipalWithTooManyClientIdsIsMarkedAsAWholeUntilTheseEnd() {
        for (int i = 0; i <= Marks.MOST_CLIENT_IDS; i++) marks.mark("alice", "id-" + i, "t");

        assertTrue(marks.has("alice", "another"));
        assertFalse(marks.has("bob", "another"));
        assertEquals(1 + Marks.MOST_CLIENT_IDS, marks.size());
        sweep(Marks.LIFE_BEATS + 1, "t");
        assertFalse(marks.has("alice", "another"));
        assertTrue(ended.contains("alice null"));
    }

    @Test
    void withoutAPlaceForAnotherPrincipalEverybodyIsMarked() {
        for (int i = 0; i < MOST; i++) marks.mark("user-" + i, "c", "t");

        assertTrue(marks.has("bob", "b"));
        assertTrue(marks.size() <= MOST);
        sweep(Marks.LIFE_BEATS + 1, "t");
        assertFalse(marks.has("bob", "b"));
        assertEquals(0, marks.size());
    }

    @Test
    void namesThatAreTooLongShareOneMark() {
        String longId = "x".repeat(Principals.LONGEST_CLIENT_ID + 1);
        for (int i = 0; i < 10_000; i++) marks.mark("alice", longId + i, "t");
        for (int i = 0; i < 10_000; i++) marks.mark("p".repeat(Principals.LONGEST_PRINCIPAL + 1) + i, longId, "t");

        assertTrue(marks.has("alice", longId + "never seen"));
        assertFalse(marks.has("alice", "short"));
        assertEquals(4, marks.size());
    }

    @Test
    void threeHundredThousandNamesTakeNoMoreThanTheirPlaces() {
        for (int i = 0; i < 300_000; i++) marks.mark("user-" + i % 300, "id-" + i, "t");

        assertTrue(marks.size() <= MOST);
        assertTrue(marks.has("user-7", "id-7"));
        sweep(Marks.LIFE_BEATS + 1, "t");
        assertEquals(0, marks.size());
    }

    /** Whoever asks right after its own mark finds it, however many others mark and the sweep looks at them. */
    @Test
    void aMarkIsThereForTheSameThreadWhileOthersMarkAndSweep() throws InterruptedException {
        AtomicBoolean lost = new AtomicBoolean();
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 4; n++) {
            String name = "user-" + n;
            threads.add(new Thread(() -> {
                for (int i = 0; i < 50_000; i++) {
                    marks.mark(name, "id-" + i % 2_000, "t");
                    if (!marks.has(name, "id-" + i % 2_000)) lost.set(true);
                    marks.mark("common", "id-" + i % 100, "t");
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread each : threads) {
            while (each.isAlive()) sweep(0, "t");
            each.join();
        }

        assertFalse(lost.get());
        sweep(Marks.LIFE_BEATS + 1, "t");
        assertEquals(0, marks.size());
    }

    @Test
    void theCountStaysRightWhileMarksEndAllTheTime() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            threads.add(new Thread(() -> {
                for (int i = 0; i < 200_000; i++) marks.mark("user-" + i % 3, "id-" + i % 7, "t");
            }));
        }
        threads.forEach(Thread::start);
        for (Thread each : threads) {
            while (each.isAlive()) sweep(0, "none");
            each.join();
        }

        sweep(0, "none");
        assertEquals(0, marks.size());
        assertFalse(marks.has("user-1", "id-1"));
    }
}
