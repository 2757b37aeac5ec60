package harness;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MXBean;
import javax.management.ObjectName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.metrics.Quota;

/**
 * Shows every client-quota metric of a broker with its tags and the bound that Kafka enforces.
 *
 * <p>Kafka's own JMX beans show rates but not bounds. A reporter gets the metric itself, whose config holds the quota:
 * {@code byte-rate} of Produce and Fetch, {@code request-time} of Request, {@code tokens} of ControllerMutation
 * (ClientQuotaManager.registerQuotaMetrics and its subclasses). Kafka replaces the config when a quota changes, so the probe
 * reads the config at each call, not when the metric appears.
 */
public final class QuotaProbe implements MetricsReporter {

    /** The bean that JMX shows. */
    @MXBean
    public interface Quotas {
        /** For each metric a JSON object: type, tags, bound and value. */
        String[] getQuotas() throws JsonProcessingException;
    }

    private static final String NAME = "harness:type=QuotaProbe";
    private static final Map<String, String> TYPES = Map.of(
        "Produce", "PRODUCE",
        "Fetch", "FETCH",
        "Request", "REQUEST",
        "ControllerMutation", "CONTROLLER_MUTATION");

    /** Static, because a node may make several reporters but shows one bean. */
    private static final Set<KafkaMetric> METRICS = ConcurrentHashMap.newKeySet();

    @Override
    public void configure(Map<String, ?> configs) {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        try {
            ObjectName name = new ObjectName(NAME);
            if (!server.isRegistered(name)) {
                Quotas bean = QuotaProbe::quotas;
                server.registerMBean(bean, name);
            }
        } catch (JMException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
        metrics.forEach(this::metricChange);
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        if (TYPES.containsKey(metric.metricName().group())) {
            METRICS.add(metric);
        }
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        METRICS.remove(metric);
    }

    @Override
    public void close() { }

    private static String[] quotas() throws JsonProcessingException {
        List<KafkaMetric> limited = METRICS.stream().filter(metric -> metric.config().quota() != null).toList();
        String[] lines = new String[limited.size()];
        for (int i = 0; i < lines.length; i++) {
            lines[i] = Json.MAPPER.writeValueAsString(shown(limited.get(i)));
        }
        return lines;
    }

    private static Map<String, Object> shown(KafkaMetric metric) {
        Quota quota = metric.config().quota();
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("type", TYPES.get(metric.metricName().group()));
        shown.put("tags", metric.metricName().tags());
        shown.put("bound", quota.bound());
        shown.put("value", metric.metricValue());
        return shown;
    }
}
