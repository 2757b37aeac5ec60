package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Under which name the bytes of a turned back request are counted. */
class TurnedBackBytesTest {
    @Test
    void aTopicIsCountedUnderTheNameInTheRequestOrElseTheOnlyOneThatKafkaAsksAbout() {
        assertEquals("a", TurnedBackBytes.name("a", FenceFixture.write("a", "b")));
        assertEquals("a", TurnedBackBytes.name("", FenceFixture.write("a")));
        assertEquals(TurnedBackBytes.SEVERAL, TurnedBackBytes.name("", FenceFixture.write("a", "b")));
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
