package org.quotahost.util;

import java.util.concurrent.atomic.AtomicLongArray;

/** Times in fixed buckets, for a quantile that costs nothing to keep. Lock-free. */
public final class Histogram {
    /** Upper bounds in seconds; what is above the last is counted behind it. */
    static final double[] BOUNDS = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

    private final AtomicLongArray counts = new AtomicLongArray(BOUNDS.length + 1);

    public void record(long nanos) {
        double seconds = nanos / 1e9;
        int at = 0;
        while (at < BOUNDS.length && seconds > BOUNDS[at]) at++;
        counts.incrementAndGet(at);
    }

    public long count() {
        long sum = 0;
        for (int i = 0; i < counts.length(); i++) sum += counts.get(i);
        return sum;
    }

    /** The upper bound, in seconds, of the bucket that holds the quantile; 0 for no times, infinite above 10 s. */
    public double quantile(double share) {
        long wanted = (long) Math.ceil(share * count());
        long sum = 0;
        for (int i = 0; i < counts.length() && wanted > 0; i++) {
            sum += counts.get(i);
            if (sum >= wanted) return i < BOUNDS.length ? BOUNDS[i] : Double.POSITIVE_INFINITY;
        }
        return 0;
    }
}
