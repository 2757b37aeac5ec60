package org.quotahost.table;

import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.Escape;

/**
 * What one client uses of one quota that is its own (Scope CLIENT), for the task publish-usage.
 *
 * <p>As a line (Escape, in ASCII): type, principal, client-id, rate and limit in bytes/s (NaN is unlimited), by how many ms
 * Kafka has delayed it of late (the mean of the last 30 to 60 s: ClientQuotaManager's throttle-time; 0 if it hasn't), and for
 * how many ms it has been silent.
 */
record Usage(ClientQuotaType type, String principal, String clientId, Tags tags, Double limit, long idleMs) {
    static final List<ClientQuotaType> TYPES = List.of(ClientQuotaType.PRODUCE, ClientQuotaType.FETCH);
    /** Who has been silent for longer uses nothing: Kafka's rates look back for a few seconds only. */
    static final long LATELY_MS = 120_000;

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

    /** The busiest; asks Kafka's MBeans: not under the table's lock. */
    static String[] lines(List<Usage> used, int most) {
        return used.stream().map(Usage::measured).filter(Objects::nonNull)
                .sorted(Comparator.comparingDouble(Measured::rate).reversed()).limit(most)
                .map(Measured::line).toArray(String[]::new);
    }

    /** Null where the client is exempt, or Kafka measures it together with others, or not at all. */
    private Measured measured() {
        if (tags.exempt(type.ordinal()) || !tags.clientId.equals(clientId) || !tags.user.equals(Sanitizer.sanitize(principal))) return null;
        double[] now = KafkaRates.now(type, tags);
        return Double.isNaN(now[0]) ? null : new Measured(this, now[0], Double.isNaN(now[1]) ? 0 : now[1]);
    }
}
