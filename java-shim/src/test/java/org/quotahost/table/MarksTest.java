package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.table.QuotaTable.SlowedTopics;
import org.quotahost.util.Names;

/** Tests that the marks are bounded by number and by the length of names, and that each mark ends. */
class MarksTest {
    private int now;
    private final List<String> ended = new ArrayList<>();
    private final Marks marks = new Marks(() -> now, (principal, clientId) -> ended.add(principal + " " + clientId));
    /** Each topic has the factor of its group; the group small has the smaller factor. */
    private final Marks.Affected affected = marks.affected(1, List.of(of("small", "one", 0.2), of("large", "other", 0.8)), null);

    private static SlowedTopics of(String topic, String budget, double factor) {
        return new SlowedTopics(budget, factor, null, new String[] {topic}, new String[] {"a budget"}, Set.of());
    }

    private void sweep(int beat, String... affected) {
        now = beat;
        marks.sweep(List.of(affected)::contains);
    }

    @Test
    void ofTopicsOfSeveralGroupsThatWithTheSmallestFactorCountsAsLongAsTheClientWritesThere() {
        marks.mark("alice", "a", "large", affected);
        assertEquals("other", marks.group("alice", "a", affected));
        marks.mark("alice", "a", "small", affected);
        marks.mark("alice", "a", "large", affected);
        assertEquals("one", marks.group("alice", "a", affected));

        now = Marks.LIFE_BEATS; // since then it has written only to the other topic
        marks.mark("alice", "a", "large", affected);
        assertEquals("other", marks.group("alice", "a", affected));
        assertNull(marks.group("bob", "a", affected));
        assertNull(marks.group("alice", "a", null));
    }

    /** Otherwise the windows of its tags would count as full of what it sent with the tags of the other group. */
    @Test
    void aMarkThatGoesOverToAnotherGroupEndsForTheTagsOfTheFirstOne() {
        marks.mark("alice", "a", "large", affected);
        marks.mark("alice", "a", "large", affected);
        assertEquals(List.of(), ended);
        now = 5;
        marks.mark("alice", "a", "small", affected);
        marks.mark("alice", "a", "large", affected);
        assertEquals(List.of("alice a"), ended);
        assertEquals(5, marks.changedAt());
    }

    /** The request thread was suspended before its report. */
    @Test
    void whatATardyThreadTellsTakesNothingBack() {
        now = 9;
        marks.changed();
        now = 3;
        marks.changed();
        assertEquals(9, marks.changedAt());
    }

    /** The thread of this request was suspended after it read the clock. */
    @Test
    void aRequestThatComesLateEndsNoMarkEarlier() {
        now = Marks.LIFE_BEATS;
        marks.mark("alice", "a", "small", affected);
        now = 0;
        marks.mark("alice", "a", "small", affected);

        sweep(Marks.LIFE_BEATS + 1, "small");
        assertEquals("small", marks.topic("alice", "a"));
    }

    @Test
    void aPrincipalWithTooManyClientIdsIsMarkedAsAWholeUntilTheseEnd() {
        for (int i = 0; i <= Marks.MOST_CLIENT_IDS; i++) marks.mark("alice", "id-" + i, "t", affected);

        assertNotNull(marks.topic("alice", "another"));
        assertNull(marks.topic("bob", "another"));
        assertEquals(1 + Marks.MOST_CLIENT_IDS, marks.size());
        sweep(Marks.LIFE_BEATS + 1, "t");
        assertNull(marks.topic("alice", "another"));
        assertTrue(ended.contains("alice null"));
    }

    @Test
    void namesThatAreTooLongShareOneMark() {
        String longId = "x".repeat(Names.LONGEST_CLIENT_ID + 1);
        for (int i = 0; i < 10_000; i++) marks.mark("alice", longId + i, "t", affected);
        for (int i = 0; i < 10_000; i++) marks.mark("p".repeat(Names.LONGEST_PRINCIPAL + 1) + i, longId, "t", affected);

        assertNotNull(marks.topic("alice", longId + "never seen"));
        assertNull(marks.topic("alice", "short"));
        assertEquals(2, marks.size());
    }

    /**
     * A client that asks right after its own mark finds it, however many others mark and the sweep looks at them; and the count
     * is right, also while marks end all the time.
     */
    @ParameterizedTest
    @ValueSource(strings = {"t", "none"})
    void manyMarkWhileTheSweepGoesOn(String stillAffected) throws InterruptedException {
        AtomicBoolean lost = new AtomicBoolean();
        List<Thread> threads = IntStream.range(0, 4).mapToObj(n -> new Thread(() -> {
            for (int i = 0; i < 50_000; i++) {
                marks.mark("user-" + n, "id-" + i % 2_000, "t", affected);
                if (marks.topic("user-" + n, "id-" + i % 2_000) == null) lost.set(true);
                marks.mark("common", "id-" + i % 100, "t", affected);
            }
        })).toList();
        threads.forEach(Thread::start);
        while (threads.stream().anyMatch(Thread::isAlive)) sweep(0, stillAffected);

        assertTrue(stillAffected.equals("none") || !lost.get());
        sweep(Marks.LIFE_BEATS + 1, stillAffected);
        assertEquals(0, marks.size());
        assertNull(marks.topic("user-1", "id-1"));
    }
}
