package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.QuotaFence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.inbox.Inbox;
import org.quotahost.internals.KafkaBeans.Reading;
import org.quotahost.table.QuotaTable.SlowedTopics;
import org.quotahost.util.Beans;

/** Tests what a factor multiplies for a client without a quota: its usage at the fall, or its later usage if it comes later. */
class StandInsTest {
    private static final double UNLIMITED = Double.NaN;
    private static final int REQUEST = ClientQuotaType.REQUEST.ordinal();
    /** Here the newcomers' rate is 100 and the floor is 10. */
    private final QuotaTable table = new QuotaTable(new Inbox());
    private final Beans kafka = new Beans();
    private QuotaFence fence;
    private long ms;
    private final ArrayDeque<Double> sent = new ArrayDeque<>();

    @BeforeEach
    void alice() {
        table.configureTap(1, 400, 1_000_000); // Kafka's windows are short
        Tables.configure(table, 10, "PRODUCE");
        Tables.publish(table, "alice", "app", Scopes.CLIENT, UNLIMITED);
    }

    @AfterEach
    void close() {
        kafka.close();
        FenceFixture.reset();
    }

    private void uses(double rate) throws JMException {
        kafka.close();
        kafka.show("Produce", ",user=alice,client-id=app", rate, 0);
    }

    /** Lets the client send all the time for so many seconds; Kafka asks for limits only now and then. */
    private Double goOn(double seconds) {
        return goOn(seconds, Tables.PRODUCE);
    }

    /** Lets the client send requests for so many seconds for which Kafka asks for the tags of this type. */
    private Double goOn(double seconds, int type) {
        for (int i = 0; i < seconds * 5; i++) {
            table.beat(ms += QuotaTable.BEAT_MS);
            Tables.tags(table, type, "alice", "app");
        }
        return Tables.limit(table, Tables.PRODUCE, "alice", "app");
    }

    private void stay(double seconds) {
        for (int i = 0; i < seconds * 5; i++) table.beat(ms += QuotaTable.BEAT_MS);
    }

    @Test
    void whoWasThereBeforeTheFallIsSlowedByWhatItUsedThen() throws JMException {
        uses(4_000);
        goOn(1);
        table.factor(0.5, "", null);

        assertEquals(2_000.0, goOn(2));
        uses(2_000); // it is slowed now, but must not be slowed again
        assertEquals(2_000.0, goOn(20));
    }

    @Test
    void whoComesWhileTheFactorIsLowIsMeasuredWhenKafkasWindowsAreFullOfIt() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        table.factor(0.5, "", null);
        stay(60); // for example after a restart, or a client was silent when the factor fell
        uses(30);
        assertEquals(50.0, goOn(11));

        assertEquals(15.0, goOn(3));
    }

    /** Kafka mutes for (rate - limit) / limit x window. With the usage times the factor at once, the client was muted for 99 s. */
    @Test
    void whoComesWhileTheFactorIsLowIsMutedForNoLongerThanMaxMuteOnceItIsMeasured() throws JMException {
        comesAtAFactorOfATenth();
        assertEquals(300.0, lowered(60, 3_000));
    }

    /** For example, the host hangs for some seconds longer than validity, and fallback.action is OPEN. */
    @ParameterizedTest
    @ValueSource(ints = {0, 5, 11})
    void theSameHoldsIfTheFactorIsOneForAMomentMeanwhile(int seconds) throws JMException {
        comesAtAFactorOfATenth();
        lowered(14 + seconds, 3_000);
        table.fallback(1.0);
        goOn(5);
        table.fallback(null);
        assertEquals(300.0, lowered(80, 3_000));
    }

    private void comesAtAFactorOfATenth() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        table.configure(100, 3_600, 10, new String[] {"PRODUCE"}, new double[] {1e8, 1e8, 1e8, 1e8}, Tables.ALL);
        table.factor(0.1, "", null);
        stay(60);
        uses(3_000);
    }

    /** Lets the client send as much as it may up to a rate, and returns its last limit; no mute is longer than max.mute. */
    private double lowered(int seconds, double rate) {
        List<Double> limits = new ArrayList<>();
        for (int beat = 0; beat < 5 * seconds; beat++) {
            Double now = goOn(0.2);
            limits.add(now == null ? rate : Math.min(rate, now));
            double limit = limits.get(beat), highest = Collections.max(limits.subList(Math.max(0, beat - 60), beat + 1));
            assertTrue((highest - limit) / limit * 12 <= 30.01, "from " + highest + " to " + limit);
        }
        return limits.get(limits.size() - 1);
    }

    /** For each type Kafka walks over all metrics of the broker, and once more a second later. */
    @Test
    void aStandInMakesKafkaReadTheLimitsOfItsOwnTypeAlone() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        table.factor(0.5, "", null);
        stay(60);
        uses(30);
        goOn(10);
        int[] before = Arrays.stream(ClientQuotaType.values()).mapToInt(type -> generation(type.ordinal())).toArray();
        assertEquals(15.0, goOn(10));

        assertTrue(generation(Tables.PRODUCE) > before[Tables.PRODUCE]);
        for (int type = Tables.FETCH; type < before.length; type++) assertEquals(before[type], generation(type), "of type " + type);
    }

    private int generation(int type) {
        return table.factorInForce.generation(type);
    }

    /** For example, a stream processor that has nothing to write for a while: fetches fill none of the windows of PRODUCE. */
    @Test
    void whoFetchesAndBeginsToWriteWhileTheFactorIsLowIsMeasuredWhenKafkasWindowsAreFullOfWhatItWrites() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        goOn(60, Tables.FETCH);
        table.factor(0.5, "", null);
        goOn(60, Tables.FETCH);
        uses(12); // it writes 30, but Kafka's rate of the first second is lower
        assertEquals(50.0, goOn(4));
        uses(30);

        assertEquals(15.0, goOn(10));
    }

    /** A small producer once has much to write: its full usage is unknown then, and was small before. */
    @Test
    void whoUsedLessThanTheFloorAtTheFallAndIsHeldBackLaterIsNotMeasured() throws JMException {
        uses(1);
        goOn(20);
        table.factor(0.5, "", null);
        assertEquals(50.0, goOn(20));
        uses(49);

        assertEquals(50.0, goOn(20));
    }

    /** No limit held the client back until it wrote to the budget's topic. */
    @Test
    void whoBeginsToWriteToABudgetThatFellLongAgoIsSlowedByWhatItUsedBefore() throws JMException {
        fence = FenceFixture.fence("none", Map.of());
        table.configureTap(2, 1_000, 30_000);
        table.budgets(List.of(Tables.budget("team", 0.5, "orders")));
        stay(3_600);
        uses(4_000);
        goOn(20);
        writing(10);

        assertEquals(2_000.0, goOn(0));
    }

    /** The client must make up for what it could not send: two beats without a limit would let it, and mute it for minutes. */
    @Test
    void whoIsSlowedAlreadyIsNeverWithoutALimitWhenABudgetFalls() throws JMException {
        fence = FenceFixture.fence("none", Map.of());
        table.configureTap(2, 1_000, 30_000);
        uses(4_000);
        goOn(20);
        table.factor(0.5, "", null);
        goOn(10);
        table.budgets(List.of(Tables.budget("team", 0.9, "orders")));
        writing(0);
        assertNotNull(goOn(0));

        table.factor(1, "", null);
        table.budgets(List.of());
        goOn(60);
        uses(1);
        table.factor(0.5, "", null);
        goOn(10);
        table.budgets(List.of(Tables.budget("team", 0.9, "orders")));
        writing(0);
        assertNotNull(goOn(0), "at the newcomers' rate, too");
    }

    /** Lets the client write to the budget's topic, at least once. */
    private void writing(int seconds) {
        for (int second = 0; second <= seconds; second++) {
            fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write("orders"));
            goOn(second == 0 ? 0 : 1);
        }
    }

    /** If the machine is too busy, the watch comes late and skips beats. */
    @Test
    void aWatchThatComesOnceASecondMeasuresToo() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        table.factor(0.5, "", null);
        stay(60.2);
        uses(30);
        for (int second = 0; second < 14; second++) {
            table.beat(ms += 1_000);
            Tables.limit(table, Tables.PRODUCE, "alice", "app");
        }
        assertEquals(15.0, goOn(0));
    }

    @Test
    void whoIsHeldBackIsNotMeasuredSinceNobodyKnowsWhatItWouldUse() throws JMException {
        table.factor(0.5, "", null);
        stay(60);
        uses(49);

        assertEquals(50.0, goOn(30));
    }

    /** Kafka's rate is a mean: while a limit rises, the rate is far below the limit that holds the client back. */
    @Test
    void whoIsDelayedWhileItsLimitRisesIsNotMeasured() throws JMException {
        fence = FenceFixture.fence("none", Map.of());
        table.configureTap(11, 1_000, 30_000);
        table.factor(0.2, "", null);
        stay(60);
        sendsAllThatItMay(60, false);
        table.factor(0.6, "", null);
        assertEquals(60.0, sendsAllThatItMay(60, false));
        table.factor(0, "", null);
        goOn(60, REQUEST);
        table.factor(0.5, "", null);
        assertEquals(50.0, sendsAllThatItMay(60, false), "after a PAUSE");

        table.budgets(List.of(Tables.budget("team", 0.9, "orders")));
        assertEquals(50.0, sendsAllThatItMay(60, true), "with slowed tags");
        table.factor(1, "", null);
        assertEquals(90.0, sendsAllThatItMay(60, true), "and the budget's factor");
    }

    private double sendsAllThatItMay(int seconds, boolean toBudget) throws JMException {
        for (int beat = 0; beat < seconds * 5; beat++) {
            if (toBudget) writing(0);
            sent.add(goOn(0.2));
            if (sent.size() > 55) sent.remove();
            kafka.close();
            kafka.show("Produce", ",user=alice,client-id=app", sent.stream().mapToDouble(Double::doubleValue).sum() / 55, 20);
        }
        return sent.getLast();
    }

    /** For example, after a start in a PAUSE, or if a file fills the disk at once. Kafka asks for no tags of producers in a PAUSE. */
    @Test
    void whoWasTurnedBackInAPauseIsMeasuredWhenKafkasWindowsAreFullOfWhatItWritesAfterwards() throws JMException {
        FenceFixture.fence("none", Map.of());
        table.configureTap(11, 1_000, 30_000);
        table.factor(0, "", null);
        goOn(60, REQUEST);
        table.factor(0.5, "", null);
        uses(30);
        assertEquals(50.0, goOn(11), 2);

        uses(40);
        assertEquals(20.0, goOn(5));
    }

    /** Otherwise it has the newcomers' rate until Kafka's windows are full, and is measured while it makes up for the PAUSE. */
    @Test
    void whoWasThereBeforeAPauseThatCameAtOnceIsSlowedAfterItByWhatItUsedBefore() throws JMException {
        FenceFixture.fence("none", Map.of());
        table.configureTap(3, 1_000, 30_000);
        uses(4_000);
        goOn(10);
        table.factor(0, "", null);
        goOn(0.4);
        uses(30_000); // these are attempts
        assertNull(goOn(3));
        table.factor(0.5, "", null);

        assertEquals(2_000.0, goOn(6));
        assertEquals(2_000.0, goOn(20));
        table.factor(1, "", null);
        assertNull(goOn(20));
    }

    @Test
    void whoUsesLessThanTheFloorIsMeasuredOnceItUsesMore() throws JMException {
        goOn(20);
        uses(0);
        table.factor(0.5, "", null);
        assertEquals(50.0, goOn(20));
        uses(40);
        assertEquals(20.0, goOn(2));
    }

    @Test
    void whenTheFactorIsOneAgainAllIsForgotten() throws JMException {
        uses(4_000);
        goOn(1);
        table.factor(0.5, "", null);
        goOn(1);
        table.factor(1, "", null);
        assertNull(goOn(1));
        uses(6_000);
        goOn(20);
        table.factor(0.5, "", null);

        assertEquals(3_000.0, goOn(2));
    }

    /** A budget may be nearly used up for days; the usage of other clients during that time must not count. */
    @Test
    void whileABudgetSlowsItsWritersOthersAreMeasuredWhenAFactorFallsForThem() throws JMException {
        FenceFixture.fence("none", Map.of());
        table.budgets(List.of(Tables.budget("team", 0.5, "orders")));
        stay(3_600);
        uses(4_000);
        assertNull(goOn(20));
        table.factor(0.5, "", null);
        assertEquals(2_000.0, goOn(2));
        table.factor(1, "", null);
        assertNull(goOn(2));
        uses(6_000);
        goOn(20);

        table.factor(0.5, "", null);
        assertEquals(3_000.0, goOn(2));
    }

    /** The client used little when it wrote to the budget's topics. */
    @Test
    void whoWroteToItsTopicsBeforeIsMeasuredAnewToo() throws JMException {
        writesToTopicsOfABudget(2, 400, 0.5);
        uses(4_000);
        assertNull(goOn(16), "as soon as its mark has ended");
        assertNull(goOn(60));

        table.factor(0.5, "", null);
        assertEquals(2_000.0, goOn(6));
    }

    /** Its budget was removed some seconds before: Kafka's windows still contain what it sent with slowed tags. */
    @Test
    void whoWasSlowedByABudgetUntilAMomentAgoIsNotMeasuredAnew() throws JMException {
        writesToTopicsOfABudget(11, 4_000, 0.1);
        table.budgets(List.of());
        assertNull(goOn(3));
        uses(1_500);
        table.factor(0.5, "", null);
        assertEquals(2_000.0, goOn(20));
        table.factor(1, "", null);
        assertNull(goOn(30));
        table.factor(0.5, "", null);
        assertEquals(750.0, goOn(20), "but it is measured anew later");
    }

    /** Lets the client use so much, and then write to the topics of a budget until its limit has moved to the budget's factor. */
    private void writesToTopicsOfABudget(int windows, double rate, double factor) throws JMException {
        fence = FenceFixture.fence("none", Map.of());
        table.configureTap(windows, 1_000, 30_000);
        uses(rate);
        goOn(20);
        table.budgets(List.of(Tables.budget("team", factor, "orders")));
        writing(60);
        assertEquals(rate * factor, goOn(0));
    }

    @Test
    void whoIsHeldBackByABudgetIsNotMeasured() throws JMException {
        fence = FenceFixture.fence("none", Map.of());
        table.budgets(List.of(Tables.budget("team", 0.5, "orders")));
        stay(60);
        uses(49);
        writing(30);
        assertEquals(50.0, goOn(1));
    }

    /** For example, a volume swings around its soft limit. Kafka may ask between two beats. */
    @Test
    void whenTheFactorFallsAgainBeforeLimitsAreBackNobodyHasTheNewcomersRate() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        uses(4_000);
        goOn(20);
        table.factor(0.9, "", null);
        goOn(20);
        table.factor(1, "", null);
        goOn(1);

        table.factor(0.9, "", null);

        Double limit = Tables.limit(table, Tables.PRODUCE, "alice", "app");
        assertTrue(limit == null || limit >= 3_600, "limit " + limit);
        assertEquals(3_600.0, goOn(20));
    }

    /** For example, a large topic is deleted in a PAUSE, and the disk fills again while clients make up for the PAUSE. */
    @Test
    void whoSendsMuchBetweenTwoFallsIsMutedForNoLongerThanMaxMute() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        uses(400);
        goOn(20);
        table.factor(0.1, "", null);
        goOn(60);
        assertEquals(3_600.0, fallsAgain());
    }

    @Test
    void whoComesBetweenTwoFallsIsMutedForNoLongerThanMaxMute() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        table.factor(0.1, "", null);
        stay(60);
        assertTrue(fallsAgain() >= 3_600);
    }

    private double fallsAgain() throws JMException {
        table.factor(1, "", null);
        assertNull(goOn(1));
        uses(4_000);
        table.factor(0.9, "", null);
        return lowered(120, 4_000);
    }

    /** Kafka's rate is what the client sent in 2 s, divided by 10 s: with this rate it was held to a fifth of its usage. */
    @Test
    void whoBeganJustBeforeTheFallIsSlowedByWhatItUsedASecond() throws JMException {
        table.configureTap(11, 1_000, 30_000);
        stay(60);
        goOn(2);
        uses(800);
        table.factor(0.5, "", null);

        assertEquals(2_000, goOn(20), 500);
    }

    @Test
    void whoIsForgottenByTheTableIsKeptNowhere() throws JMException {
        uses(4_000);
        goOn(1);
        table.factor(0.5, "", null);
        goOn(2);
        var scope = new WeakReference<>(table.scopes.find("alice", "app").scope);
        for (int tick = 0; tick < 3 * QuotaTable.TICKS_PER_IDLE; tick++) Tables.tick(table);
        stay(2);
        for (int i = 0; i < 2; i++) Tables.limit(table, Tables.PRODUCE, "bob", "b"); // until then alice is the one that followed

        for (int i = 0; i < 20 && scope.get() != null; i++) System.gc();
        assertNull(scope.get());
    }

    @Test
    void theSlowedTagsCountWithTheOwnOnes() throws JMException {
        Scope scope = table.scopes.find("alice", "app").scope;
        scope.slowed(SlowedTopics.VOLUMES);
        kafka.show("Produce", ",user=alice,client-id=app", 100, Double.NaN); // Kafka has not delayed it lately
        kafka.show("Produce", ",user=\"<slowed alice>\",client-id=app", 30, 20);
        Reading own = scope.read(Tables.PRODUCE, false), slowed = scope.read(Tables.PRODUCE, true);

        assertEquals(130.0, scope.read(Tables.PRODUCE).rate());
        assertEquals(20, own.and(slowed).delayMs());
        assertEquals(20, slowed.and(own).delayMs());
    }
}
