import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.PythonQuotaCallback;

/**
 * Measures how fast new clients get their own quota, in a JVM that runs only the callback.
 *
 * <p>Arguments: the Python executable, the number of clients, then more properties (name=value, without prefix). The program
 * prints a line {@code name value unit} for each figure.
 */
public final class NewClients {
    private static final String NEWCOMERS = "<newcomers";
    /** The bursts before the JVM has compiled the needed code, and the measured bursts after that. */
    private static final int WARM_UP = 10, MEASURED = 20;
    /** The pause between two questions for a client. A thread that asks without a pause would take a core from those that answer. */
    private static final long POLL_NANOS = 20_000;

    public static void main(String[] args) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        configs.put("node.id", "1");
        configs.put("client.quota.callback.python.executable", args[0]);
        for (String extra : Arrays.copyOfRange(args, 2, args.length)) {
            String[] pair = extra.split("=", 2);
            configs.put("client.quota.callback." + pair[0], pair[1]);
        }
        long started = System.nanoTime();
        try (var callback = new PythonQuotaCallback()) {
            callback.configure(configs);
            print("start", (System.nanoTime() - started) / 1e6, "ms");
            int count = Integer.parseInt(args[1]);
            bursts(callback, count, "first", 1);
            bursts(callback, count, "early", WARM_UP);
            bursts(callback, count, "warm", MEASURED);
            oneByOne(callback, 2_000);
        }
    }

    /** Prints medians over so many bursts, one after the other: the time until the last client is known, and the host's CPU time. */
    private static void bursts(PythonQuotaCallback callback, int count, String run, int times) throws InterruptedException {
        double[] millis = new double[times], cpus = new double[times];
        for (int i = 0; i < times; i++) {
            long cpu = hostCpuNanos();
            millis[i] = burst(callback, count, run + "-" + i);
            cpus[i] = (hostCpuNanos() - cpu) / 1e6;
        }
        print("burst-" + run, median(millis), "ms");
        print("burst-" + run + "-longest", Arrays.stream(millis).max().orElseThrow(), "ms");
        print("burst-" + run + "-host-cpu", median(cpus), "ms");
    }

    private static double burst(PythonQuotaCallback callback, int count, String run) throws InterruptedException {
        List<KafkaPrincipal> unseen = new ArrayList<>();
        for (int i = 0; i < count; i++) unseen.add(new KafkaPrincipal("User", run + "-" + i));
        long started = System.nanoTime();
        unseen.forEach(principal -> known(callback, principal));
        while (!unseen.isEmpty()) {
            unseen.removeIf(principal -> known(callback, principal));
            Thread.sleep(1);
        }
        return (System.nanoTime() - started) / 1e6;
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    /** Returns the CPU time of the host's thread, since other load on the machine disturbs it less than the elapsed time. */
    private static long hostCpuNanos() {
        for (Thread each : Thread.getAllStackTraces().keySet()) {
            if (each.getName().equals("quotahost-host")) return ManagementFactory.getThreadMXBean().getThreadCpuTime(each.getId());
        }
        throw new IllegalStateException("no host");
    }

    private static void oneByOne(PythonQuotaCallback callback, int count) throws InterruptedException {
        double[] micros = new double[count];
        for (int i = 0; i < count; i++) {
            KafkaPrincipal principal = new KafkaPrincipal("User", "solo-" + i);
            long started = System.nanoTime();
            while (!known(callback, principal)) LockSupport.parkNanos(POLL_NANOS);
            micros[i] = (System.nanoTime() - started) / 1e3;
            Thread.sleep(1);
        }
        Arrays.sort(micros);
        print("one-p50", micros[count / 2] / 1e3, "ms");
        print("one-p99", micros[count * 99 / 100] / 1e3, "ms");
        print("one-max", micros[count - 1] / 1e3, "ms");
    }

    private static boolean known(PythonQuotaCallback callback, KafkaPrincipal principal) {
        return !callback.quotaMetricTags(ClientQuotaType.PRODUCE, principal, "bench").get("user").startsWith(NEWCOMERS);
    }

    private static void print(String what, double value, String unit) {
        System.out.printf("%s %.3f %s%n", what, value, unit);
    }
}
