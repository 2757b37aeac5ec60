package org.quotahost.table;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaUtils;

/** Replays the commands on standard input with Kafka's and the broker's own classes; a line "." ends a batch. */
public final class ThrottlingOracle {
    private static final MetricName NAME = new MetricName("oracle", "test", "", Map.of());
    private static final StringBuilder OUT = new StringBuilder();

    private static MeasurableStat stat;
    private static MetricConfig config;
    private static Tap tap;
    private static Tap.Windows windows;

    private ThrottlingOracle() { }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals(".")) {
                System.out.print(OUT.append(".\n"));
                System.out.flush();
                OUT.setLength(0);
            } else {
                replay(line.split(" "));
            }
        }
    }

    private static void replay(String[] words) {
        switch (words[0]) {
            case "rate" -> make(new Rate(), words[1], words[2], null);
            case "bucket" -> make(new TokenBucket(), words[1], words[2], words[3]);
            case "record" -> stat.record(config, Double.parseDouble(words[1]), Long.parseLong(words[2]));
            case "measure" -> print(stat.measure(config, Long.parseLong(words[1])));
            case "throttle" -> throttle(Double.parseDouble(words[1]), Long.parseLong(words[2]));
            case "debt" -> debt(Long.parseLong(words[1]));
            case "tap" -> tap = new Tap();
            case "configure" -> windows = windows(words[1], words[2], words[3]);
            case "step" -> step(Double.parseDouble(words[1]), words[2].equals("held"), Long.parseLong(words[3]));
            case "rise" -> print(windows(words[2], words[3], "30000").rise(Long.parseLong(words[1])));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void make(MeasurableStat made, String samples, String windowMs, String quota) {
        stat = made;
        config = new MetricConfig().samples(Integer.parseInt(samples))
            .timeWindow(Long.parseLong(windowMs), TimeUnit.MILLISECONDS);
        if (quota != null) {
            config.quota(Quota.upperBound(Double.parseDouble(quota)));
        }
    }

    /** Prints the throttle time of ClientQuotaManager.recordAndGetThrottleTimeMs, before Kafka casts it to an int. */
    private static void throttle(double bound, long timeMs) {
        double value = stat.measure(config, timeMs);
        long throttleMs = Quota.upperBound(bound).acceptable(value) ? 0
            : QuotaUtils.throttleTime(violation(value, bound), timeMs);
        print(throttleMs);
    }

    /** Prints the wait of ControllerMutationQuotaManager.recordAndGetThrottleTimeMs, after Sensor.checkQuotas. */
    private static void debt(long timeMs) {
        double tokens = stat.measure(config, timeMs);
        print(tokens >= 0 ? 0
            : ControllerMutationQuotaManager.throttleTimeMs(violation(tokens, config.quota().bound())));
    }

    private static QuotaViolationException violation(double value, double bound) {
        KafkaMetric metric = new KafkaMetric(new Object(), NAME, stat, config, Time.SYSTEM);
        return new QuotaViolationException(metric, value, bound);
    }

    private static void step(double factor, boolean held, long nowMs) {
        print(tap.step(windows, factor, held, nowMs) ? 1 : 0);
        print(tap.value());
    }

    private static Tap.Windows windows(String number, String ms, String maxMuteMs) {
        return new Tap.Windows(Integer.parseInt(number), Long.parseLong(ms), Long.parseLong(maxMuteMs));
    }

    private static void print(Object number) {
        OUT.append(number).append('\n');
    }
}
