package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Quantiles of the recorded times. */
class HistogramTest {
    private final Histogram histogram = new Histogram();

    @Test
    void aQuantileIsTheUpperBoundOfItsBucket() {
        assertEquals(0, histogram.quantile(0.99));
        for (int i = 0; i < 99; i++) histogram.record(900_000);
        histogram.record(40_000_000);

        assertEquals(0.001048576, histogram.quantile(0.5));
        assertEquals(0.001048576, histogram.quantile(0.99));
        assertEquals(0.067108864, histogram.quantile(1));
        assertEquals(100, histogram.count());
    }
}
