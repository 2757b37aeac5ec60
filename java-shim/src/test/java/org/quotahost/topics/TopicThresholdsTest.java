package org.quotahost.topics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.quotahost.Proves;

/** How many bytes/s are expected of each topic. */
class TopicThresholdsTest {
    private static TopicQuotas.Thresholds thresholds(double total, Map<String, Double> own, Set<String> spared) {
        return new TopicQuotas.Thresholds(total, own, spared, Set.of(), null);
    }

    @Proves("v1.rest")
    @Test
    void topicsWithoutAThresholdShareWhatTheOthersLeave() {
        var thresholds = thresholds(100, Map.of("important", 50.0, "absent", 20.0), Set.of());

        double share = thresholds.share(List.of("important", "a", "b"));

        assertEquals(15, share);
        assertEquals(List.of(50.0, 15.0, 20.0), List.of(thresholds.expected("important", share), thresholds.expected("a", share),
                thresholds.expected("absent", share)));
    }

    @Test
    void withNothingLeftTheShareIsNothingAndWithoutTopicsItIsAll() {
        assertEquals(0, thresholds(0.3, Map.of("a", 0.1, "b", 0.2), Set.of()).share(List.of("c")));
        assertEquals(100, thresholds(100, Map.of(), Set.of()).share(List.of()));
    }

    @Property
    void whatIsExpectedOfAllTopicsIsTheTotalAndNeverNegativeWhateverTheirOrder(@ForAll @Size(max = 20) List<@IntRange(min = 1) Integer> rates,
            @ForAll @IntRange(max = 1_000_000) int left, @ForAll @IntRange(min = 1, max = 50) int others, @ForAll long seed) {
        Map<String, Double> own = new HashMap<>();
        for (int i = 0; i < rates.size(); i++) own.put("own" + i, (double) rates.get(i));
        double total = rates.stream().mapToDouble(Integer::doubleValue).sum() + left;
        var thresholds = thresholds(total, own, Set.of());
        List<String> topics = new ArrayList<>(own.keySet());
        for (int i = 0; i < others; i++) topics.add("other" + i);

        double share = thresholds.share(topics);
        double sum = topics.stream().mapToDouble(topic -> thresholds.expected(topic, share)).sum();
        Collections.shuffle(topics, new Random(seed));

        assertEquals(total, sum, total * 1e-12);
        assertTrue(share >= 0);
        assertEquals(share, thresholds.share(topics));
        assertEquals((double) left / others, share, 1e-6);
    }
}
