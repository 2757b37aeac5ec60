package org.quotahost.host;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.quotahost.metrics.Gauges;
import org.quotahost.table.FactorInForce;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.Escape;

/**
 * What the broker knows of its volumes, and of what fills them: the answers of the MBean QuotaTable's operations
 * volumes and retention, for {@code quotahost explain --volume}.
 *
 * <p>The sizes of topics are not among them: explain lists the log directories itself, so that a slow disk holds up no
 * thread of the broker. Both operations run on a thread of JMX; retention waits up to ClusterAdmin.TIMEOUT_MS.
 */
final class VolumeState {
    /** How many of the busiest clients are told, and how many of those that are marked. */
    private static final int CLIENTS = 10;
    /** The properties of a topic that decide what is deleted here, and when. */
    private static final Set<String> RETENTION = Set.of("retention.ms", "retention.bytes", "cleanup.policy",
            "remote.storage.enable", "local.retention.ms", "local.retention.bytes");
    private static final Set<String> SHOWN = Set.of("Volume", "VolumeLimits");

    private final Gauges gauges;
    private final QuotaTable table;
    private final Map<String, String> broker;

    private VolumeState(Gauges gauges, QuotaTable table, Map<String, String> broker) {
        this.gauges = gauges;
        this.table = table;
        this.broker = broker;
    }

    static void add(Gauges gauges, QuotaTable table, Map<String, String> broker, ClusterAdmin admin) {
        var state = new VolumeState(gauges, table, broker);
        gauges.operation("QuotaTable", "volumes", args -> state.lines());
        gauges.operation("QuotaTable", "retention", args -> retention(args[0].isEmpty() ? new String[] {""} : admin.configs("TOPIC", args[0].split(","))));
    }

    /** A Reply with a line for each of RETENTION: topic, name, value, tab-separated. */
    private static String[] retention(String[] reply) {
        return List.of(reply).stream().map(line -> line.split("\t", -1))
                .filter(each -> each.length == 1 || RETENTION.contains(each[1]))
                .map(each -> each.length == 1 ? each[0] : String.join("\t", each[0], each[1], each[3])).toArray(String[]::new);
    }

    /**
     * A line for each fact, of tab-separated fields whose first one is its kind: state (name, value), dir (path),
     * gauge (volume, attribute, number), client (principal, client-id, bytes/s that it produces), mark (principal,
     * client-id, the affected topic that it asked to write to).
     */
    private String[] lines() {
        List<String> lines = new ArrayList<>();
        FactorInForce.Factor factor = table.factorInForce().hostFactor();
        lines.add(Escape.fields("state", "state", TableState.state(table.factorInForce().value())));
        lines.add(Escape.fields("state", "factor", table.factorInForce().value()));
        lines.add(Escape.fields("state", "cause", factor.cause()));
        for (String directory : directories()) lines.add(Escape.fields("dir", Path.of(directory).toAbsolutePath()));
        for (Gauges.Gauge gauge : gauges.all()) {
            if (!SHOWN.contains(gauge.type())) continue;
            lines.add(Escape.fields("gauge", gauge.name(), gauge.attribute(), gauge.value().getAsDouble()));
        }
        lines.addAll(clients());
        table.marks(CLIENTS).forEach(line -> lines.add("mark\t" + line));
        return lines.toArray(String[]::new);
    }

    private List<String> directories() {
        String named = broker.getOrDefault("log.dirs", "");
        if (named.isBlank()) named = broker.getOrDefault("log.dir", "");
        if (named.isBlank()) named = "/tmp/kafka-logs"; // Kafka's own default of log.dir
        return List.of(named.split(",")).stream().map(String::strip).filter(each -> !each.isEmpty()).toList();
    }

    /** The clients that produce most, of those that have a quota of their own: of others Kafka measures no rate. */
    private List<String> clients() {
        List<String> lines = new ArrayList<>();
        String[] reply = table.usage(2 * CLIENTS); // fetches are among them
        for (int i = 1; i < reply.length; i++) {
            String[] fields = reply[i].split("\t", -1);
            if (fields[0].equals("PRODUCE") && lines.size() < CLIENTS) {
                lines.add("client\t" + fields[1] + "\t" + fields[2] + "\t" + fields[3]);
            }
        }
        return lines;
    }
}
