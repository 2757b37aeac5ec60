package org.quotahost.brokerlog;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.DoubleSupplier;
import java.util.function.LongSupplier;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * Decides which of Kafka's lines about changed limits the log gets ("Sensor for quota-id ... already exists. Setting
 * quota to ...", ClientQuotaManager.updateQuotaMetricConfigs): none that follow from a step of the factor, and of the
 * others, such as those of an administrator's new quota, PER_MINUTE.
 *
 * <p>The lines don't say what they follow from. But Kafka writes them on the thread to which the callback has
 * answered quotaResetRequired, and then the callback knows whether the factor has moved since that type was read last.
 */
final class LimitLines {
    /** Kafka's default client quota, say, changes as many sensors as there are clients. */
    static final int PER_MINUTE = 20;
    static final long MINUTE = 60_000_000_000L;

    private final LongSupplier nanoClock;
    /** By quota type, how often the factor had changed limits when Kafka read them last. */
    private final AtomicIntegerArray steps = new AtomicIntegerArray(ClientQuotaType.values().length);
    /** Whether the scan that this thread does follows from the factor; Kafka's few request threads keep it. */
    private final ThreadLocal<Boolean> factor = new ThreadLocal<>();
    private final LongAdder byFactor = new LongAdder();
    private final LongAdder byOthers = new LongAdder();
    private final LongAdder scans = new LongAdder();
    /** The minute in which lines of the others pass, and how many have passed; approximate where threads race. */
    private volatile long minuteBegan;
    private volatile int passed;
    private long summarizedAt;
    private boolean summarized;

    LimitLines(LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
    }

    void scan(int type, int stepsNow) {
        boolean moved = steps.getAndSet(type, stepsNow) != stepsNow;
        if (moved) scans.increment();
        factor.set(moved);
    }

    /**
     * Whether the line that this thread is about to log is left out.
     *
     * @param asked Kafka only asks whether the level is on, and will come again with the line
     */
    boolean leavesOut(boolean asked) {
        if (Boolean.TRUE.equals(factor.get())) {
            byFactor.increment();
            return true;
        }
        long now = nanoClock.getAsLong();
        if (minuteBegan == 0 || now - minuteBegan >= MINUTE) {
            minuteBegan = now;
            passed = 0;
        }
        boolean full = passed >= PER_MINUTE;
        if (full) byOthers.increment();
        else if (!asked) passed = passed + 1;
        return full;
    }

    /** The line in place of those that were left out; null if there were none, or if the last is not a minute old. */
    String summary(DoubleSupplier limitFactor) {
        long now = nanoClock.getAsLong();
        if (summarized && now - summarizedAt < MINUTE) return null;
        long factors = byFactor.sumThenReset();
        long others = byOthers.sumThenReset();
        if (factors + others == 0) return null;
        summarized = true;
        summarizedAt = now;
        if (factors == 0) return "Kafka has taken over %,d more changed limits than are named above".formatted(others);
        String rest = others == 0 ? "" : "; %,d changes for other reasons are left out, too".formatted(others);
        return "Kafka has taken over changed limits: %,d in %,d readings because of the factor, by which limits are now multiplied: %.3f%s"
                .formatted(factors, scans.sumThenReset(), limitFactor.getAsDouble(), rest);
    }
}
