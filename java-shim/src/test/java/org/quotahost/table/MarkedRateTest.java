package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.lifecycle.AfterTry;
import org.apache.kafka.common.protocol.ApiKeys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.QuotaFence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.inbox.Inbox;
import org.quotahost.table.QuotaTable.SlowedTopics;

/**
 * Tests the rate of a client that changes between its scope's own tags and (while it is marked) the slowed tags, which Kafka
 * measures apart. It must get no more than its quota: Kafka's burst after a silence, and the rate from then on.
 */
class MarkedRateTest {
    private static final double QUOTA = 1_000;
    private static final double REQUEST = 50;
    private static final int STEP_MS = 50;
    /** In seconds. */
    private static final double LOOK_BACK = KafkaSensors.NUM * KafkaSensors.WINDOW_MS / 1_000.0;
    private static final long MAX_MUTE_MS = 30_000;

    /** For so many ms, the client writes to a topic as fast as it may (null: it is silent) while one topic is affected. */
    record Phase(String topic, String affected, int ms) {}

    /** A client that sends whatever Kafka takes; it records the most that it was ever ahead of its quota. */
    private static final class Greedy {
        private long now;
        private final QuotaTable table = new QuotaTable(new Inbox());
        private final KafkaSensors kafka = new KafkaSensors(table, Tables.PRODUCE, 1);
        private final QuotaFence fence = FenceFixture.fence("none", Map.of());
        private long mutedUntil;
        private double ahead;
        private double mostAhead;
        private double longestMute;
        private double sent;

        private final boolean crowded;

        /** @param crowded the marks of other writers leave no place for this client's mark: all clients are marked as a whole */
        Greedy(boolean crowded) {
            this.crowded = crowded;
            table.configureTap(KafkaSensors.NUM, KafkaSensors.WINDOW_MS, MAX_MUTE_MS);
            Tables.configure(table, 10, "PRODUCE");
            Tables.publish(table, "alice", "a", Scopes.CLIENT, QUOTA);
            if (crowded) table.principals.max = 1;
        }

        void run(double factor, Phase phase) {
            Tables.affect(table, factor, phase.affected);
            run(phase.ms, () -> phase.topic);
        }

        /** Writes to the topic that the supplier names now, or is silent for null. */
        void run(int ms, Supplier<String> topic) {
            for (long end = now + ms; now < end; now += STEP_MS) {
                if (now % QuotaTable.BEAT_MS == 0) {
                    table.beat(now);
                    table.beat(0);
                }
                String asked = topic.get();
                while (asked != null && now >= mutedUntil) send(asked);
                ahead = Math.max(0, ahead - QUOTA * STEP_MS / 1_000);
            }
        }

        private void send(String topic) {
            if (crowded) fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "bob", "b"), FenceFixture.write(topic));
            fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "a"), FenceFixture.write(topic));
            long mute = kafka.record("alice", "a", REQUEST, now);
            mutedUntil = now + mute;
            longestMute = Math.max(longestMute, mute);
            ahead += REQUEST;
            sent += REQUEST;
            mostAhead = Math.max(mostAhead, ahead);
        }
    }

    @AfterTry
    @AfterEach
    void reset() {
        FenceFixture.reset();
    }

    /**
     * Kafka itself allows about ten seconds' worth at once after a silence. Before the windows of tags to which a client comes
     * back counted as emptier, a client got up to 31 s' worth ahead of its quota here.
     */
    @Property(tries = 400)
    void aClientGetsNoMoreByChangingBetweenMarkedAndUnmarked(@ForAll("phases") List<Phase> phases,
            @ForAll @DoubleRange(min = 0.05, max = 0.95) double factor, @ForAll boolean crowded) {
        Greedy client = run(factor, phases, crowded);

        assertTrue(client.mostAhead <= 1.3 * LOOK_BACK * QUOTA, () -> "ahead by " + client.mostAhead);
        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    /**
     * A mark lasts 15 s after the last request to the topic. Then the client sends elsewhere for less time than Kafka looks
     * back. In nine minutes it got 91 s' worth ahead of its quota; a fiftieth remains, since max.mute has priority.
     */
    @Test
    void norByOneRequestToTheTopicEveryHalfMinute() {
        List<Phase> turn = List.of(new Phase("orders", "orders", 200), new Phase("other", "orders", 26_000));

        Greedy client = run(0.95, Collections.nCopies(20, turn).stream().flatMap(List::stream).toList(), false);

        double seconds = client.now / 1_000.0;
        assertTrue(client.mostAhead <= (1.1 * LOOK_BACK + seconds / 50) * QUOTA, () -> "ahead by " + client.mostAhead);
        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    /** Kafka's windows still contain what the client sent with its own tags while their limit rose. It was muted for 105 s. */
    @Test
    void norIsItMutedForLongerOnceItsTopicIsAffectedForAMomentOnly() {
        Greedy client = run(0.95, List.of(new Phase("orders", "orders", 200), new Phase(null, "bills", 9_000),
                new Phase("other", "bills", 1_000), new Phase("orders", "orders", 200), new Phase("other", "bills", 4_000)), false);

        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    /**
     * Kafka measures the tags of each group apart: the client got 242 s' worth ahead of its quota in ten minutes, also if the
     * topic is in both groups.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norAsTheFactorsOfTwoGroupsCross(boolean shared) {
        Greedy client = new Greedy(false);
        client.run(20_000, () -> null);
        for (int turn = 0; turn < 40; turn++) {
            boolean first = turn % 2 == 0;
            String[] ones = shared ? new String[] {"one", "both"} : new String[] {"one"};
            String[] others = shared ? new String[] {"other", "both"} : new String[] {"other"};
            client.table.budgets(List.of(Tables.budget("one", first ? 0.9 : 0.95, ones), Tables.budget("other", first ? 0.95 : 0.9, others)));
            client.run(14_000, () -> shared ? "both" : client.now % 2_000 < 1_000 ? "one" : "other");
        }

        assertTrue(client.mostAhead <= 1.3 * LOOK_BACK * QUOTA, () -> "ahead by " + client.mostAhead);
        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    /** A client of three budgets that are used alike got 0.4 times its limit in this scene and twice in others, also by one topic. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norAsNearlyEqualFactorsOfThreeGroupsCross(boolean shared) {
        Greedy client = new Greedy(false);
        client.run(20_000, () -> null);
        for (int turn = 0; turn < 120; turn++) {
            List<SlowedTopics> budgets = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                budgets.add(Tables.budget("budget" + i, 0.5 + (turn + i) % 3 / 100.0, shared ? "all" : "topic" + i));
            }
            client.table.budgets(budgets);
            client.run(1_000, () -> shared ? "all" : "topic" + client.now / STEP_MS % 3);
        }

        assertTrue(client.mostAhead <= LOOK_BACK * QUOTA, () -> "ahead by " + client.mostAhead);
        assertEquals(0.5 * QUOTA, client.sent / 120, 0.1 * QUOTA);
    }

    /**
     * For example, load slows fetches now and then, and a budget slows producers alone. Here PRODUCE is the type that the
     * budget's factor does not multiply.
     */
    @Test
    void norAsTheFactorOfATypeComesAndGoesThatTheBudgetDoesNotSlow() {
        Greedy client = new Greedy(false);
        Tables.configure(client.table, 10, "FETCH");
        client.table.budgets(List.of(Tables.budget("team", 0.5, "orders")));
        client.run(20_000, () -> "orders");
        for (int turn = 0; turn < 20; turn++) {
            client.table.factorsOfTypes(new double[] {turn % 2 == 0 ? 0.95 : 1, 1, 1, 1}, new String[] {"", "", "", ""});
            client.run(14_000, () -> "orders");
        }

        assertTrue(client.mostAhead <= 1.3 * LOOK_BACK * QUOTA, () -> "ahead by " + client.mostAhead);
        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    /** The client's share of its limit follows the tap. Otherwise the client was muted for 185 s. */
    @Test
    void norAsTheFactorFallsSoonAfterItBeganToWriteToTheTopic() {
        Greedy client = new Greedy(false);
        client.run(0.9, new Phase("orders", "orders", 9_000));
        client.run(0.05, new Phase("orders", "orders", 15_000));

        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    /** Here marks also end at any time, since topics stop being affected. A client cannot cause that. */
    @Property(tries = 400)
    void norAsTopicsComeAndGo(@ForAll("phasesOfTwoTopics") List<Phase> phases,
            @ForAll @DoubleRange(min = 0.05, max = 0.95) double factor) {
        Greedy client = run(factor, phases, false);

        assertTrue(client.mostAhead <= 2.2 * LOOK_BACK * QUOTA, () -> "ahead by " + client.mostAhead);
        assertTrue(client.longestMute <= MAX_MUTE_MS, () -> "muted for " + client.longestMute);
    }

    private static Greedy run(double factor, List<Phase> phases, boolean crowded) {
        Greedy client = new Greedy(crowded);
        client.run(factor, new Phase(null, "bills", 20_000));
        for (Phase phase : phases) client.run(factor, phase);
        return client;
    }

    @Provide
    Arbitrary<List<Phase>> phases() {
        return phases(Arbitraries.of("orders"));
    }

    @Provide
    Arbitrary<List<Phase>> phasesOfTwoTopics() {
        return phases(Arbitraries.of("orders", "orders", "orders", "bills"));
    }

    private static Arbitrary<List<Phase>> phases(Arbitrary<String> affected) {
        Arbitrary<String> topic = Arbitraries.of("orders", "other").injectNull(0.1);
        Arbitrary<Integer> beats = Arbitraries.oneOf(Arbitraries.integers().between(1, 10), Arbitraries.integers().between(1, 130));
        Arbitrary<Integer> ms = beats.map(each -> each * (int) QuotaTable.BEAT_MS);
        return Combinators.combine(topic, affected, ms).as(Phase::new).list().ofMinSize(1).ofMaxSize(60);
    }
}
