package org.quotahost.util;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/** A histogram of times in buckets of up to 1, 2, 4, 8 ns and so on, so that a quantile costs neither memory nor a lock. */
public final class Histogram {
    private final AtomicLongArray counts = new AtomicLongArray(Long.SIZE);

    public void record(long nanos) {
        counts.incrementAndGet(Long.SIZE - Long.numberOfLeadingZeros(nanos));
    }

    public long count() {
        return IntStream.range(0, counts.length()).mapToLong(counts::get).sum();
    }

    /** Returns the upper bound, in seconds, of the bucket with a quantile (0..1); 0 if no time was recorded. */
    public double quantile(double share) {
        long wanted = (long) Math.ceil(share * count());
        long sum = 0;
        for (int i = 0; i < counts.length() && wanted > 0; i++) {
            sum += counts.get(i);
            if (sum >= wanted) return (1L << i) / 1e9;
        }
        return 0;
    }
}
