package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Set;
import org.junit.jupiter.api.Test;

/** Under which name the bytes of a turned back request are counted. */
class TurnedBackBytesTest {
    @Test
    void aTopicIsCountedUnderTheNameInTheRequestOrElseTheOnlyOneThatKafkaAsksAbout() {
        assertEquals("a", TurnedBackBytes.name("a", 2, Set.of("a", "b")));
        assertEquals("a", TurnedBackBytes.name("", 1, Set.of("a")));
        assertEquals(TurnedBackBytes.SEVERAL, TurnedBackBytes.name("", 2, Set.of("a", "b")));
        assertEquals(TurnedBackBytes.SEVERAL, TurnedBackBytes.name("", 2, Set.of("a")), "an id that Kafka doesn't know");
    }

    @Test
    void aTopicToWhichTheClientMayNotWriteIsNotCounted() {
        assertNull(TurnedBackBytes.name("invented", 2, Set.of("a")));
    }

    @Test
    void aNameThatNoTopicCanHaveIsNotKept() {
        assertEquals(TurnedBackBytes.OTHERS, TurnedBackBytes.name("no topic", 1, Set.of("no topic")));
        String tooLong = "a".repeat(250);
        assertEquals(TurnedBackBytes.OTHERS, TurnedBackBytes.name(tooLong, 1, Set.of(tooLong)));
    }

    @Test
    void namesBeyondTheBoundAreCountedTogether() {
        int before = TurnedBackBytes.topics().size();
        for (int i = 0; i < TurnedBackBytes.MOST_TOPICS + 50; i++) TurnedBackBytes.add("many-" + i, 7);

        assertEquals(7, TurnedBackBytes.of("many-0"));
        assertEquals(7 * (50 + before), TurnedBackBytes.of(TurnedBackBytes.OTHERS));
        assertEquals(TurnedBackBytes.MOST_TOPICS + 1, TurnedBackBytes.topics().size());
        TurnedBackBytes.add("many-0", 1);
        assertEquals(8, TurnedBackBytes.of("many-0"), "a topic that is known keeps its name");
    }
}
