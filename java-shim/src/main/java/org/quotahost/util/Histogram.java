package org.quotahost.util;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/** Counts times in fixed buckets, so that a quantile costs neither memory nor a lock. */
public final class Histogram {
    /** Upper bounds of the buckets in seconds; one more bucket counts the times above the last bound. */
    static final double[] BOUNDS =
            {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

    private final AtomicLongArray counts = new AtomicLongArray(BOUNDS.length + 1);

    public void record(long nanos) {
        int at = Arrays.binarySearch(BOUNDS, nanos / 1e9);
        counts.incrementAndGet(at < 0 ? -at - 1 : at);
    }

    public long count() {
        return IntStream.range(0, counts.length()).mapToLong(counts::get).sum();
    }

    /** The upper bound, in seconds, of the bucket with a quantile (0..1): 0 if there is no time, infinity above 10 s. */
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
