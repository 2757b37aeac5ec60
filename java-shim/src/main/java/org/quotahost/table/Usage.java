package org.quotahost.table;

import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.Escape;
import org.quotahost.util.Sanitized;

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

    private static final BusiestClients BUSIEST = new BusiestClients();

    /** By what one client's usage is found again. */
    record Key(ClientQuotaType type, String principal, String clientId) {}

    /** The usage with the rate and the delay that Kafka measures for it; NaN for no delay. */
    record Measured(Usage usage, double rate, double delayMs) {
        String line() {
            return Escape.ascii(Escape.fields(usage.type.name(), usage.principal, usage.clientId, rate,
                    usage.limit == null ? Double.NaN : usage.limit, Double.isNaN(delayMs) ? 0 : delayMs, usage.idleMs));
        }
    }

    static Usage of(Client client, ClientQuotaType type, long idleMs, boolean slowed) {
        Tags tags = client.tags(type.ordinal());
        int at = type.ordinal();
        Double limit = slowed ? tags.slowedLimit(at) : tags.limit(at);
        return new Usage(type, client.principal, client.clientId, tags, limit, idleMs);
    }

    /**
     * The lines of the busiest. It reads Kafka's MBeans, so the caller must not have the table's lock.
     *
     * @param most how many lines at most
     */
    static String[] lines(List<Usage> used, int most) {
        return BUSIEST.of(used, most, Usage::measured).stream().map(Measured::line).toArray(String[]::new);
    }

    Key key() {
        return new Key(type, principal, clientId);
    }

    /** Null if the client is exempt, or if Kafka measures it together with others or not at all. */
    private Measured measured() {
        boolean own = tags.clientId.equals(clientId) && tags.user.equals(Sanitized.tag(principal));
        if (!own || tags.exempt(type.ordinal())) return null;
        KafkaRates.Reading now = KafkaRates.read(type, tags);
        return Double.isNaN(now.rate()) ? null : new Measured(this, now.rate(), now.delayMs());
    }
}
