package org.quotahost.table;

import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.Escape;

/**
 * How much one client uses of one quota that is its own (scope CLIENT), for the task publish-usage.
 *
 * <p>As a line (Escape, in ASCII) its fields are: the type; principal and client-id; rate and limit in bytes/s (NaN for
 * unlimited); by how many ms Kafka has delayed the client lately (the mean of the last 30 to 60 s, throttle-time of
 * ClientQuotaManager; 0 if it has not); and for how many ms the client has been silent.
 */
record Usage(ClientQuotaType type, String principal, String clientId, Tags tags, Double limit, long idleMs) {
    static final List<ClientQuotaType> TYPES = List.of(ClientQuotaType.PRODUCE, ClientQuotaType.FETCH);
    /** A client that has been silent for longer uses nothing: Kafka's rates look back for a few seconds only. */
    static final long RECENT_MS = 120_000;

    /** The usage with what Kafka measures for it. */
    private record Measured(Usage usage, double rate, double delayMs) {
        String line() {
            return Escape.ascii(Escape.fields(usage.type.name(), usage.principal, usage.clientId, rate,
                    usage.limit == null ? Double.NaN : usage.limit, delayMs, usage.idleMs));
        }
    }

    static Usage of(Client client, ClientQuotaType type, long idleMs) {
        Tags tags = client.tags[type.ordinal()];
        return new Usage(type, client.principal, client.clientId, tags, tags.limit(type.ordinal()), idleMs);
    }

    /**
     * The lines of the busiest. It reads Kafka's MBeans, so the caller must not have the table's lock.
     *
     * @param most how many lines at most
     */
    static String[] lines(List<Usage> used, int most) {
        return used.stream().map(Usage::measured).filter(Objects::nonNull)
                .sorted(Comparator.comparingDouble(Measured::rate).reversed()).limit(most)
                .map(Measured::line).toArray(String[]::new);
    }

    /** Null if the client is exempt, or if Kafka measures it together with others or not at all. */
    private Measured measured() {
        boolean own = tags.clientId.equals(clientId) && tags.user.equals(Sanitizer.sanitize(principal));
        if (!own || tags.exempt(type.ordinal())) return null;
        double[] now = KafkaRates.now(type, tags);
        return Double.isNaN(now[0]) ? null : new Measured(this, now[0], Double.isNaN(now[1]) ? 0 : now[1]);
    }
}
