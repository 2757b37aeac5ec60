import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.PythonQuotaCallback;

/**
 * Measures how fast new clients get their own quota, in a JVM with the callback and nothing else.
 *
 * <p>Arguments: the Python executable, the number of clients, then more properties (name=value, without prefix).
 * It prints a line {@code name value unit} for each figure.
 */
public final class NewClients {
    private static final String NEWCOMERS = "<newcomers";
    private static final int WARM = 3;

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
            burst(callback, Integer.parseInt(args[1]), "cold");
            for (int i = 1; i <= WARM; i++) burst(callback, Integer.parseInt(args[1]), "warm-" + i);
            oneByOne(callback, 2_000);
        }
    }

    private static void burst(PythonQuotaCallback callback, int count, String run) throws InterruptedException {
        List<KafkaPrincipal> unseen = new ArrayList<>();
        for (int i = 0; i < count; i++) unseen.add(new KafkaPrincipal("User", run + "-" + i));
        long cpu = hostCpuNanos();
        long started = System.nanoTime();
        unseen.forEach(principal -> known(callback, principal));
        while (!unseen.isEmpty()) {
            unseen.removeIf(principal -> known(callback, principal));
            Thread.sleep(1);
        }
        print("burst-" + run + "-" + count, (System.nanoTime() - started) / 1e6, "ms");
        print("burst-" + run + "-host-cpu", (hostCpuNanos() - cpu) / 1e6, "ms");
    }

    /** What the host's thread has used of the CPU: other work on the machine changes it less than the time that passes. */
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
            while (!known(callback, principal)) Thread.onSpinWait();
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
