import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DeleteTopicsOptions;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.CumulativeSum;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints names and defaults of Kafka's own classes; each line has the subject, a tab, and the words of the answer. */
public final class KafkaToday {
    private KafkaToday() { }

    public static void main(String[] args) throws Exception {
        say("broker-configs", AbstractKafkaConfig.CONFIG_DEF.names());
        say("topic-configs", LogConfig.configNames());
        say("admin-configs", AdminClientConfig.configNames());
        for (String name : List.of("quota.window.num", "controller.quota.window.num", "quota.window.size.seconds",
                "controller.quota.window.size.seconds")) {
            say(name, QuotaConfig.CONFIG_DEF.defaultValues().get(name));
        }
        ConfigDef quotas = QuotaConfig.userAndClientQuotaConfigs();
        say("quota-names", quotas.names());
        say("mutation-rate-type", quotas.configKeys().get("controller_mutation_rate").type);
        say("mutation-rate-default", quotas.defaultValues().get("controller_mutation_rate"));
        say("entities", (Object[]) ConfigEntityType.values());
        say("errors", (Object[]) Errors.values());
        say("mutation-metrics-group", QuotaType.CONTROLLER_MUTATION);
        say("exception", ThrottlingQuotaExceededException.class.getSimpleName(),
            ThrottlingQuotaExceededException.class.getSuperclass().getSimpleName());
        say("exception-methods", methods(ThrottlingQuotaExceededException.class));
        say("violation-methods", methods(QuotaViolationException.class));
        for (Class<?> options : List.of(CreateTopicsOptions.class, CreatePartitionsOptions.class, DeleteTopicsOptions.class)) {
            say("methods-" + options.getSimpleName(), methods(options));
            Object made = options.getConstructor().newInstance();
            say("retries-by-default-" + options.getSimpleName(), options.getMethod("shouldRetryOnQuotaViolation").invoke(made));
        }
        say("bucket-is", Arrays.stream(TokenBucket.class.getInterfaces()).map(Class::getSimpleName).toArray());
        say("bucket-is-made-with", Arrays.stream(TokenBucket.class.getConstructors())
            .map(c -> c.getParameterCount() == 0 ? "nothing" : c.getParameterTypes()[0].getSimpleName()).toArray());
        for (ApiKeys api : List.of(ApiKeys.PRODUCE, ApiKeys.FETCH)) {
            say("oldest-" + api.name, api.oldestVersion());
        }
        say("callback-methods", methods(ClientQuotaCallback.class));
        say("limit-type", ClientQuotaCallback.class.getMethod("quotaLimit",
            org.apache.kafka.server.quota.ClientQuotaType.class, java.util.Map.class).getReturnType().getSimpleName());
        record();
    }

    /** Prints what a sensor throws when its sum reaches its bound, and when the sum exceeds the bound. */
    private static void record() {
        try (Metrics metrics = new Metrics()) {
            Sensor sensor = metrics.sensor("sensor");
            sensor.add(metrics.metricName("sum", "group"), new CumulativeSum(), new MetricConfig().quota(Quota.upperBound(1)));
            for (String what : List.of("recorded-at-a-bound", "recorded-above-a-bound")) {
                String thrown = null;
                try {
                    sensor.record(1);
                } catch (QuotaViolationException e) {
                    thrown = e.getClass().getSimpleName();
                }
                say(what, thrown);
            }
        }
    }

    private static Object[] methods(Class<?>... classes) {
        return Stream.of(classes).flatMap(c -> Arrays.stream(c.getDeclaredMethods())).map(Method::getName).toArray();
    }

    private static void say(String what, Object... words) {
        Collection<Object> all = words.length == 1 && words[0] instanceof Collection<?> many
            ? List.copyOf(many) : Arrays.asList(words);
        System.out.println(what + "\t" + String.join(" ", new TreeSet<>(all.stream().map(String::valueOf).toList())));
    }
}
