package org.quotahost.cluster;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeLogDirsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Reply;

/**
 * Asks the cluster about its brokers, their log directories and how long topics are kept, with Java's Admin client in this JVM and this
 * broker's own credentials.
 *
 * <p>Python calls it for plugins, on threads of their own: a call waits up to TIMEOUT_MS. Every answer is a Reply:
 * its first line is empty, or the only one and says what went wrong.
 */
public final class ClusterAdmin implements AutoCloseable {
    static final int TIMEOUT_MS = 10_000;
    /** The properties of a topic that decide what is deleted here, and when. */
    private static final Set<String> RETENTION = Set.of("retention.ms", "retention.bytes", "cleanup.policy",
            "remote.storage.enable", "local.retention.ms", "local.retention.bytes");
    private static final Set<ConfigEntry.ConfigSource> STORED = Set.of(
            ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
    private final Map<String, Object> config;
    private Admin admin;
    private boolean closed;

    public ClusterAdmin(Map<String, Object> client, String clientId) {
        config = new HashMap<>(client);
        config.put("client.id", clientId);
        config.put("request.timeout.ms", TIMEOUT_MS / 2);
        config.put("default.api.timeout.ms", TIMEOUT_MS);
        config.put("reconnect.backoff.max.ms", TIMEOUT_MS);
        config.put("metric.reporters", "");
    }

    /**
     * A line for each registered broker: its id, and 1 if it is fenced (Kafka's term: not in service) or else 0,
     * tab-separated.
     */
    public String[] brokers() {
        return Reply.lines(this::askBrokers);
    }

    private String[] askBrokers() throws Exception {
        var options = new DescribeClusterOptions().includeFencedBrokers(true).timeoutMs(TIMEOUT_MS);
        Collection<Node> nodes = get(admin().describeCluster(options).nodes());
        return nodes.stream().map(node -> node.id() + "\t" + (node.isFenced() ? 1 : 0)).toArray(String[]::new);
    }

    /** The cluster's id, then the id of each broker in service, in alphabetical order. */
    public String[] alive() {
        return Reply.lines(this::askAlive);
    }

    private String[] askAlive() throws Exception {
        var answer = admin().describeCluster(new DescribeClusterOptions().timeoutMs(TIMEOUT_MS));
        Stream<String> brokers = get(answer.nodes()).stream().map(Node::idString).sorted();
        return Stream.concat(Stream.of(get(answer.clusterId())), brokers).toArray(String[]::new);
    }

    /**
     * A line for each log directory of these brokers: broker, path, capacity and usable bytes (-1 if the broker does
     * not report them), error ("" for none), tab-separated. A broker that does not answer has one line with its error
     * and no path.
     */
    public String[] logDirs(int[] brokers) {
        return Reply.lines(() -> askLogDirs(brokers));
    }

    private String[] askLogDirs(int[] brokers) throws Exception {
        List<Integer> ids = new ArrayList<>();
        for (int broker : brokers) ids.add(broker);
        var answers = admin().describeLogDirs(ids, new DescribeLogDirsOptions().timeoutMs(TIMEOUT_MS)).descriptions();
        List<String> lines = new ArrayList<>();
        for (var answer : answers.entrySet()) {
            try {
                get(answer.getValue()).forEach((path, found) -> lines.add(line(answer.getKey(), path, found)));
            } catch (ExecutionException | TimeoutException e) {
                Throwable why = e.getCause() == null ? e : e.getCause();
                String error = why.getClass().getSimpleName();
                lines.add(String.join("\t", answer.getKey().toString(), "", "-1", "-1", error));
            }
        }
        return lines.toArray(new String[0]);
    }

    /**
     * A line for each of RETENTION that is set for each of these topics: topic, name, value, tab-separated. A topic
     * that does not exist has none.
     */
    public String[] retention(String[] topics) {
        return Reply.lines(() -> askRetention(topics));
    }

    private String[] askRetention(String[] topics) throws Exception {
        List<ConfigResource> resources = Stream.of(topics).filter(topic -> !topic.isEmpty())
                .map(topic -> new ConfigResource(ConfigResource.Type.TOPIC, topic)).toList();
        var answers = admin().describeConfigs(resources, new DescribeConfigsOptions().timeoutMs(TIMEOUT_MS)).values();
        List<String> lines = new ArrayList<>();
        for (ConfigResource topic : resources) {
            try {
                for (ConfigEntry entry : get(answers.get(topic)).entries()) {
                    if (!RETENTION.contains(entry.name())) continue;
                    lines.add(String.join("\t", topic.name(), entry.name(), entry.value()));
                }
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) throw e;
            }
        }
        return lines.toArray(new String[0]);
    }

    /** The names of quotahost's that Kafka has stored for this broker or for all; it shows no values of theirs. */
    public String[] stored(String broker) {
        return Reply.lines(() -> askStored(new ConfigResource(ConfigResource.Type.BROKER, broker)));
    }

    private String[] askStored(ConfigResource broker) throws Exception {
        var options = new DescribeConfigsOptions().timeoutMs(TIMEOUT_MS);
        return get(admin().describeConfigs(List.of(broker), options).values().get(broker)).entries().stream()
                .filter(entry -> entry.name().startsWith(BrokerConfigs.PREFIX) && STORED.contains(entry.source()))
                .map(ConfigEntry::name).sorted().toArray(String[]::new);
    }

    private static String line(int broker, String path, LogDirDescription found) {
        String error = found.error() == null ? "" : found.error().getClass().getSimpleName();
        return String.join("\t", String.valueOf(broker), path.replace("\t", " "),
                String.valueOf(found.totalBytes().orElse(-1)), String.valueOf(found.usableBytes().orElse(-1)), error);
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
    }

    /** The client, made by the first call: at the broker's start its own listener is not open yet. */
    private synchronized Admin admin() throws IOException {
        if (closed) throw new IOException("this broker is stopping");
        if (config.get("bootstrap.servers") == null) {
            throw new IOException("this node has no inter-broker listener, and no static.kafka.admin.bootstrap.servers");
        }
        if (admin == null) {
            reach(config.get("bootstrap.servers").toString());
            admin = Admin.create(config);
        }
        return admin;
    }

    /** Fails while none of the addresses is open yet, as at a start; Java's client would log a warning each second. */
    static void reach(String addresses) throws IOException {
        IOException last = new IOException("no address");
        for (String address : addresses.split(",")) {
            try {
                connect(address.strip());
                return;
            } catch (IOException e) {
                last = e;
            }
        }
        throw last;
    }

    private static void connect(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        String host = address.substring(0, colon).replaceAll("[\\[\\]]", "");
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(host, Integer.parseInt(address.substring(colon + 1))), 1_000);
        }
    }

    /** Closes the client without a wait: the broker that it talks to may have stopped already. */
    @Override
    public synchronized void close() {
        closed = true;
        if (admin != null) admin.close(Duration.ZERO);
    }
}
