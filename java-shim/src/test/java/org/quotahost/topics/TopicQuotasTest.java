package org.quotahost.topics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.Proves;
import org.quotahost.QuotaFence;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.internals.Internals;
import org.quotahost.util.LogCapture;

/** Tests "Broker side quota (V1)": which requests are turned back, and how much is let in. */
class TopicQuotasTest {
    private static final double TOTAL = 3_000_000;
    private static final long LOOK_MS = 100;

    private final SimulatedMeters meters = new SimulatedMeters();
    private final TopicQuotas quotas = new TopicQuotas();
    private final QuotaFence fence = FenceFixture.fence("none", Map.of());

    @AfterEach
    void reset() {
        quotas.close();
        meters.close();
        FenceFixture.reset();
    }

    @Test
    void aTopicThatIsNamedTwiceAmongTheSparedIsSparedOnce() {
        quotas.configure(TOTAL, new String[0], new double[0], new String[] {"a", "a"}, "NOT_ENOUGH_REPLICAS", List.of());

        assertEquals(TOTAL, quotas.threshold());
    }

    private void configure(double total, Map<String, Double> own) {
        String[] names = own.keySet().toArray(new String[0]);
        double[] rates = new double[names.length];
        for (int i = 0; i < names.length; i++) rates[i] = own.get(names[i]);
        quotas.configure(total, names, rates, new String[] {"__consumer_offsets", "snapshots"}, "NOT_ENOUGH_REPLICAS", List.of());
    }

    /** Returns whether a produce request to these topics passes. */
    private boolean passes(String... topics) {
        try {
            fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write(topics));
            return true;
        } catch (RuntimeException e) {
            return false;
        }
    }

    /**
     * Simulates producers that offer so many bytes/s by topic. All that is not turned back is appended.
     *
     * @return for how many ms at a time a topic was turned back at most
     */
    private long run(long seconds, Map<String, Double> offers) {
        long longest = 0;
        Map<String, Long> passed = new HashMap<>();
        for (long now = 0; now < seconds * 1_000; now += LOOK_MS) {
            for (var offer : offers.entrySet()) {
                if (passes(offer.getKey())) {
                    meters.append(offer.getKey(), Math.round(offer.getValue() * LOOK_MS / 1_000));
                    passed.put(offer.getKey(), now);
                }
                longest = Math.max(longest, now - passed.getOrDefault(offer.getKey(), 0L));
            }
            meters.sleep(LOOK_MS);
            quotas.read(meters.nanos());
            quotas.log();
        }
        return longest;
    }

    /** Makes producers send until all these topics are over their thresholds. */
    private void exceed(String... topics) {
        for (int i = 0; i < 300 && quotas.over().size() < topics.length; i++) {
            for (String topic : topics) meters.append(topic, (long) (TOTAL / 2));
            meters.sleep(LOOK_MS);
            quotas.read(meters.nanos());
        }
    }

    private void greedyIsOver() {
        configure(TOTAL, Map.of());
        exceed("greedy");
    }

    @Proves({"v1.steady", "v1.rule"})
    @ParameterizedTest
    @ValueSource(doubles = {1.2, 3, 20, 100})
    void aGreedyTopicStaysWithinATenthOfItsShareAndTheImportantOneKeepsItsRate(double times) {
        configure(TOTAL, Map.of("important", 1_500_000.0));
        var offers = Map.of("important", 1_490_000.0, "modest", 745_000.0, "greedy", 750_000 * times);
        run(300, offers);
        long important = meters.count("important"), greedy = meters.count("greedy");

        run(300, offers);

        assertEquals(750_000, (meters.count("greedy") - greedy) / 300.0, 75_000);
        assertEquals(1_490_000, (meters.count("important") - important) / 300.0, 1_000);
        assertEquals(TOTAL, meters.rate(""), 0.1 * TOTAL);
    }

    @Proves("v1.steady")
    @ParameterizedTest
    @ValueSource(doubles = {2, 50, 1_000})
    void noTopicIsTurnedBackForMuchLongerThan30SecondsAtATimeHoweverMuchItSentAtFirst(double times) {
        configure(TOTAL, Map.of("important", 1_500_000.0, "modest", 750_000.0));
        long longest = run(900, Map.of("important", 1_490_000.0, "modest", 740_000.0, "greedy", 750_000 * times));

        assertTrue(longest <= 31_000, longest + " ms");
    }

    @Proves("v1.rule")
    @Test
    void belowTheTotalEveryTopicMayExceedItsOwn() {
        configure(TOTAL, Map.of("small", 1_000.0));
        run(120, Map.of("small", 2_900_000.0));

        assertEquals(List.of(), quotas.over());
        assertEquals(120 * 2_900_000L, meters.count("small"));
    }

    @Proves({"v1.rule", "v1.one-minute-rate"})
    @Test
    void aShortBurstOfATopicWhoseOneMinuteRateIsBelowItsOwnIsNoReasonThoughTheBrokerIsOver() {
        configure(TOTAL, Map.of("greedy", 1_000_000.0, "bursty", 500_000.0));
        run(120, Map.of("greedy", 20_000_000.0, "bursty", 1_000.0));
        long before = meters.count("bursty");
        run(6, Map.of("greedy", 20_000_000.0, "bursty", 2_500_000.0));

        assertEquals(15_000_000, meters.count("bursty") - before);
        assertTrue(quotas.rate() > TOTAL);
    }

    @Proves({"v1.recomputed", "v1.rest"})
    @Test
    void theShareFollowsTheTopicsThatComeAndGoAndTheThresholds() {
        configure(TOTAL, Map.of());
        meters.append("a", 1);
        quotas.read(meters.nanos());
        assertEquals(TOTAL, quotas.share());
        meters.append("b", 1);
        meters.append("__consumer_offsets", 1);
        run(5, Map.of());
        assertEquals(TOTAL / 2, quotas.share());
        configure(TOTAL, Map.of("a", 1_000_000.0));
        quotas.read(meters.nanos());
        assertEquals(2_000_000, quotas.share());
        meters.append("c", 1);
        meters.remove("b");
        meters.append("d", 1);
        run(5, Map.of());
        assertEquals(1_000_000, quotas.share());
        configure(0.3, Map.of("a", 0.1, "absent", 0.2));
        quotas.read(meters.nanos());
        assertEquals(0, quotas.share(), "and never less, as the sum of these is more than 0.3");
    }

    @Test
    void sparedTopicsAreNeverTurnedBackAndOneThatOnlyLooksInternalIs() {
        configure(TOTAL, Map.of());
        exceed("__consumer_offsets", "snapshots", "greedy", "__mine");

        assertEquals(List.of("__mine", "greedy"), quotas.over());
        assertTrue(passes("__consumer_offsets") && passes("snapshots"));
        assertFalse(passes("greedy") || passes("__mine"));
    }

    @Test
    void aRequestIsTurnedBackIfAnyOfItsTopicsIsOverAThresholdThatIsEnforced() {
        List<String> over = List.of("a", "b", "c");
        for (int shadowed = 0; shadowed < 8; shadowed++) {
            List<String> tried = some(over, shadowed);
            shadow("topics"); // everything passes, so all three topics stay far over their thresholds
            run(20, Map.of("a", 4e6, "b", 4e6, "c", 4e6, "quiet", 1e3));
            shadow(tried.stream().map(topic -> "topic." + topic).toArray(String[]::new));
            run(1, Map.of());
            assertEquals(over, quotas.over());
            assertEquals(tried, quotas.overInShadow());
            for (int named = 1; named < 8; named++) {
                List<String> topics = some(over, named);
                long before = TopicQuotas.shadowed.sum(), rejections = TopicQuotas.rejections.sum();
                boolean inShadow = tried.containsAll(topics);
                assertEquals(inShadow, passes(topics.toArray(new String[0])), topics + " with " + tried + " in shadow");
                assertEquals(inShadow ? 1 : 0, TopicQuotas.shadowed.sum() - before);
                assertEquals(inShadow ? 0 : 1, TopicQuotas.rejections.sum() - rejections);
            }
        }
    }

    private static List<String> some(List<String> all, int bits) {
        return all.stream().filter(each -> (bits >> all.indexOf(each) & 1) == 1).toList();
    }

    @Test
    void inShadowItCountsForHowLongATopicIsOverAndHowManyBytesBeyond() {
        shadow("topics");
        exceed("greedy");
        TopicQuotas.InShadow counts = quotas.inShadow().get("topics");
        double seconds = counts.seconds().sum(), bytes = counts.bytes().sum();

        run(10, Map.of("greedy", 5e6));

        assertEquals(10, counts.seconds().sum() - seconds, 0.5);
        assertEquals(10 * (5e6 - quotas.share()), counts.bytes().sum() - bytes, 0.05 * 10 * 5e6);
        assertEquals(1, quotas.over(counts));
        run(60, Map.of("greedy", 1e3));
        assertEquals(0, quotas.over(counts));
    }

    private void shadow(String... rules) {
        quotas.configure(TOTAL, new String[0], new double[0], new String[] {"__consumer_offsets", "snapshots"},
                "NOT_ENOUGH_REPLICAS", List.of(rules));
    }

    @Test
    void aPauseGoesBeforeTopicQuotasAndLeavesThemBehind() {
        greedyIsOver();
        Fence.state(true, true, false, null, 0);
        assertFalse(passes("other"));
        Fence.state(false, false, false, null, 0);
        assertTrue(passes("other"));
        assertFalse(passes("greedy"));
    }

    @Test
    void whenTheQuotasGoOrTheMeterCantBeReadNothingIsTurnedBack() {
        greedyIsOver();
        meters.remove("");
        assertEquals("", LogCapture.during(() -> quotas.read(meters.nanos())), "a combined node has none at its end");
        assertTrue(passes("greedy"));
        meters.sleep(130_000);
        quotas.read(meters.nanos());
        assertTrue(Internals.METERS.missing());
        meters.meter("");
        exceed("greedy");
        assertFalse(passes("greedy"));
        configure(Double.NaN, Map.of());
        quotas.read(meters.nanos());
        assertTrue(passes("greedy"));
    }

    /** An operator may switch topic quotas off for a backfill, and on again after it. */
    @Test
    void whatCameInWhileThereWereNoQuotasDoesNotCountWhenTheyComeBack() {
        var offers = Map.of("steady", 2_000_000.0, "modest", 500_000.0);
        configure(TOTAL, Map.of("steady", 1_900_000.0));
        run(60, offers);
        configure(Double.NaN, Map.of());
        run(3_000, Map.of("steady", 50_000_000.0, "modest", 500_000.0));
        run(600, offers);

        configure(TOTAL, Map.of("steady", 1_900_000.0));

        assertEquals(0, run(60, offers), "ms for which a topic was turned back");
        assertEquals(2_500_000, quotas.rate(), 25_000);
    }

    @Proves("v1.logged")
    @ParameterizedTest
    @CsvSource({"1, 1", "100, " + TopicQuotas.TOPICS_PER_LINE})
    void oneLineAMinuteNamesAFewOfTheTopicsThatAreTurnedBackAndNoRequest(int topics, int named) {
        configure(TOTAL, Map.of());
        Map<String, Double> offers = new HashMap<>();
        for (int i = 0; i < topics; i++) offers.put("topic-" + i, 30_000_000.0);
        String log = LogCapture.during(() -> run(10, offers));

        assertEquals(1, LogCapture.lines(log, " topic(s) were turned back"), log);
        assertEquals(named, log.split(" \\(1 requests, .*? are expected\\)").length - 1, log);
    }
}
