package org.quotahost.host;

import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.quotahost.util.BrokerConfigs;

/**
 * Java's Admin client, which asks the cluster, logged in as Python says. librdkafka lists neither fenced brokers (KIP-1073) nor
 * log directories, and lacks some login mechanisms of brokers. Each question waits up to TIMEOUT_MS.
 */
final class ClusterAdmin {
    private static final int TIMEOUT_MS = 10_000;

    private final String clientId;
    private volatile Map<String, Object> config = Map.of();
    /** Made at the first use, since the broker's own listener is not open yet when the broker starts. */
    private Admin admin;
    /** When the keystores' files were written. The client reads them once; certificates may be renewed in place (KIP-226). */
    private List<Long> written = List.of();

    ClusterAdmin(String clientId) {
        this.clientId = clientId;
    }

    synchronized void configure(String[] client) {
        // By default, a client that no broker lets in starts anew and logs that a thousand times a second (KIP-899), and a
        // client that was refused asks no broker until its metadata expires, after 5 minutes.
        Map<String, Object> next = new HashMap<>(Map.of("client.id", clientId, "request.timeout.ms", TIMEOUT_MS / 2,
                "default.api.timeout.ms", TIMEOUT_MS, "reconnect.backoff.max.ms", TIMEOUT_MS, "metric.reporters", "",
                "metadata.max.age.ms", TIMEOUT_MS, "metadata.recovery.strategy", "none"));
        BrokerConfigs.pairs(client).forEach(next::putIfAbsent);
        if (!next.equals(config)) end();
        config = next;
    }

    /** Returns the cluster's id, and the id of each registered broker and whether it is fenced. */
    List<Object> brokers() throws Exception {
        var answer = admin().describeCluster(new DescribeClusterOptions().includeFencedBrokers(true));
        return List.of(get(answer.clusterId()),
                get(answer.nodes()).stream().map(node -> List.of(node.id(), node.isFenced())).toList());
    }

    /** Returns each log directory of these brokers. A broker that does not answer has one row with its error and no path. */
    List<Object> logDirs(int[] brokers) throws Exception {
        List<Object> rows = new ArrayList<>();
        var answers = admin().describeLogDirs(IntStream.of(brokers).boxed().toList()).descriptions();
        for (var answer : answers.entrySet()) {
            Integer broker = answer.getKey();
            try {
                get(answer.getValue()).forEach((path, found) -> rows.add(new Object[] {broker, path,
                        size(found.totalBytes()), size(found.usableBytes()), error(found.error())}));
            } catch (ExecutionException | TimeoutException e) {
                rows.add(new Object[] {broker, "", null, null, error(e.getCause() == null ? e : e.getCause())});
            }
        }
        return rows;
    }

    private static Long size(OptionalLong bytes) {
        return bytes.isPresent() ? bytes.getAsLong() : null;
    }

    private static String error(Throwable e) {
        return e == null ? "" : e.getClass().getSimpleName();
    }

    /** Returns each property of these topics or brokers; the value is "" for null and for a secret. */
    List<Object> configs(String type, String[] names) throws Exception {
        List<Object> rows = new ArrayList<>();
        var kind = ConfigResource.Type.valueOf(type);
        var asked = Stream.of(names).map(name -> new ConfigResource(kind, name)).toList();
        for (var answer : admin().describeConfigs(asked).values().entrySet()) {
            try {
                get(answer.getValue()).entries().forEach(entry -> rows.add(List.of(answer.getKey().name(),
                        entry.name(), entry.source().name(), entry.value() == null ? "" : entry.value())));
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) throw e;
            }
        }
        return rows;
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
    }

    private Admin admin() throws IOException {
        Map<String, Object> given = config;
        // The keystores' disk may hang and name resolution may take long, so no change and no shutdown must wait for them.
        List<Long> files = written(given);
        synchronized (this) {
            if (admin != null && config == given && written.equals(files)) return admin;
            if (config == given) end();
        }
        if (given.get("bootstrap.servers") == null) {
            throw new IOException("this node has no inter-broker listener, and no static.kafka.admin.bootstrap.servers");
        }
        Admin made = Admin.create(given);
        synchronized (this) {
            if (admin == null && config == given) {
                written = files;
                return admin = made;
            }
        }
        made.close(Duration.ofMillis(1));
        return admin();
    }

    private static List<Long> written(Map<String, Object> config) {
        return Stream.of("ssl.keystore.location", "ssl.truststore.location")
                .map(name -> new File(Objects.toString(config.get(name), "")).lastModified()).toList();
    }

    /** Ends the client, whose thread may hang, for example in DNS. With a timeout of 0 Kafka's client would wait for the thread. */
    synchronized void end() {
        if (admin != null) admin.close(Duration.ofMillis(1));
        admin = null;
    }
}
