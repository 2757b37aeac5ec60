package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The watch and the host change the factor at the same time, and others read it meanwhile. */
class FactorInForceTest {
    private final QuotaTable table = Tables.table();
    private final ExecutorService other = Executors.newSingleThreadExecutor();

    @AfterEach
    void stop() {
        other.shutdownNow();
    }

    @Test
    void aFactorIsReadWithItsOwnCause() throws Exception {
        AtomicBoolean done = new AtomicBoolean();
        table.factor(0.5, "0.5");
        Future<?> reads = other.submit(() -> {
            while (!done.get()) {
                FactorInForce.Factor now = table.factorInForce().hostFactor();
                assertEquals(Double.toString(now.value()), now.cause());
            }
        });
        for (int i = 0; i < 20_000; i++) table.factor(i % 2 == 0 ? 0.25 : 0.5, i % 2 == 0 ? "0.25" : "0.5");
        done.set(true);
        reads.get();
    }

    /**
     * The rates of clients without a quota are read when the factor falls below 1. A step of the watch that had begun
     * before must not take that fall for its own without the rates.
     */
    @Test
    void clientsWithoutAQuotaFollowAFactorThatFallsDuringAStepOfTheWatch() throws Exception {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, Double.NaN);
        CyclicBarrier together = new CyclicBarrier(2);
        for (int round = 0; round < 20_000; round++) {
            Future<?> watch = other.submit(() -> {
                together.await();
                table.factorInForce().move();
                return null;
            });
            together.await();
            table.factorInForce().fallback(0.5);
            watch.get();
            assertEquals(50.0, Tables.limit(table, Tables.PRODUCE, "alice", "app"), "round " + round);
            table.factorInForce().fallback(null);
        }
    }
}
