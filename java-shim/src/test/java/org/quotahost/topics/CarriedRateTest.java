package org.quotahost.topics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The one-minute rate of Kafka's meter is known before the meter itself ticks. */
class CarriedRateTest {
    private final SimulatedMeters meters = new SimulatedMeters();
    private final TopicMeters found = new TopicMeters();
    private final CarriedRate carried = new CarriedRate();

    @AfterEach
    void close() {
        meters.close();
    }

    private double update() {
        return carried.update(found.total(), meters.nanos());
    }

    private double pass(long ms, long bytesEach100) {
        double last = 0;
        for (long t = 0; t < ms; t += 100) {
            meters.append("t", bytesEach100);
            last = update();
            meters.sleep(100);
        }
        return last;
    }

    @Test
    void itKnowsBeforeEachTickTheRateThatTheMeterHasAfterIt() {
        update();
        for (int each : new int[] {100, 0, 7, 3_000, 3_000, 50}) {
            double before = pass(5_000, each);
            assertEquals(meters.rate(""), before, 0.01 * Math.max(meters.rate(""), 10 * each), each + " bytes every 100 ms");
            update();
        }
    }

    @Test
    void aTickThatLeavesTheRateWhereItWasIsATickToo() {
        pass(60_000, 100);
        assertEquals(1_000, pass(5_000, 100), 10);
    }

    @Test
    void aMeterThatWasMadeAnewIsTakenUpAsItIs() {
        pass(20_000, 1_000);
        meters.remove("");
        meters.meter("");
        meters.append("t", 500);
        assertEquals(100, update());
    }
}
