package org.quotahost;

import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * From a base rate to the limit that Kafka is given: null (unlimited) or a finite number above 0.
 *
 * <p>Kafka's throttle time is (rate - bound) / bound x window without a cap (ClientQuotaManager, QuotaUtils), so no
 * factor may take a limit below the floor. A base rate that is itself below the floor stays as the operator set it.
 *
 * @param factor 0..1, multiplies the base rate of the factored types
 * @param produceFactor the same for PRODUCE, which a pause leaves where it was if the fence holds it
 * @param floorBytes bytes/s that no factor takes PRODUCE or FETCH below
 * @param shadow nothing is enforced: every limit is null
 */
record LimitRule(double factor, double produceFactor, double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
    static final LimitRule DEFAULT = new LimitRule(1, 35_000, Set.of(ClientQuotaType.PRODUCE), false);
    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();
    /** One percent of a thread, or one mutation in ten seconds: what a factor leaves of the types without bytes. */
    private static final double FLOOR_REQUEST = 1.0;
    private static final double FLOOR_MUTATION = 0.1;

    LimitRule(double factor, double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
        this(factor, factor, floorBytes, factored, shadow);
    }

    LimitRule withFactor(double other) {
        return new LimitRule(other, floorBytes, factored, shadow);
    }

    LimitRule withProduceFactor(double other) {
        return new LimitRule(factor, other, floorBytes, factored, shadow);
    }

    Double limit(int type, double base, boolean exempt) {
        if (shadow || exempt) return null;
        boolean unlimited = Double.isNaN(base);
        double own = TYPES[type] == ClientQuotaType.PRODUCE ? produceFactor : factor;
        if (own >= 1 || !factored.contains(TYPES[type])) return unlimited ? null : base;
        if (unlimited) return own > 0 ? null : Double.valueOf(floor(type));
        return Math.max(Math.min(base, floor(type)), base * own);
    }

    private double floor(int type) {
        return switch (TYPES[type]) {
            case PRODUCE, FETCH -> floorBytes;
            case REQUEST -> FLOOR_REQUEST;
            default -> FLOOR_MUTATION;
        };
    }
}
