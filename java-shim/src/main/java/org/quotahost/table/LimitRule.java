package org.quotahost.table;

import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * From a base rate to the limit that Kafka is given: null (unlimited) or a finite number above 0.
 *
 * <p>Kafka's throttle time is (rate - bound) / bound x window without a cap (ClientQuotaManager, QuotaUtils), so no
 * factor may take a limit below the floor. A base rate that is itself below the floor stays as the operator set it.
 *
 * @param factor 0..1, multiplies the base rate of the factored types; a client without one goes by its measured rate
 * @param produceFactor the same for PRODUCE, which a pause leaves where it was if the fence holds it
 * @param floorBytes bytes/s that no factor takes PRODUCE or FETCH below
 * @param shadow nothing is enforced: every limit is null
 */
public record LimitRule(double factor, double produceFactor, double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
    static final LimitRule DEFAULT = new LimitRule(1, 1, 35_000, Set.of(ClientQuotaType.PRODUCE), false);
    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();
    /** One percent of a thread, or one mutation in ten seconds: what a factor leaves of the types without bytes. */
    private static final double FLOOR_REQUEST = 1.0;
    private static final double FLOOR_MUTATION = 0.1;

    boolean factors(int type) {
        return factored.contains(TYPES[type]);
    }

    LimitRule withFactors(double other, double produce) {
        return new LimitRule(other, produce, floorBytes, factored, shadow);
    }

    /** @param stand what the factor acts on where the base rate is NaN (unlimited); NaN if nothing is known */
    Double limit(int type, double base, double stand, boolean exempt) {
        if (shadow || exempt) return null;
        boolean unlimited = Double.isNaN(base);
        double own = TYPES[type] == ClientQuotaType.PRODUCE ? produceFactor : factor;
        if (own >= 1 || !factors(type)) return unlimited ? null : base;
        double whole = unlimited ? stand : base;
        if (Double.isNaN(whole)) return own > 0 ? null : Double.valueOf(floor(type));
        return Math.max(Math.min(whole, floor(type)), whole * own);
    }

    /** Whether the factor acts on what stands in for a rate: on an unlimited client of a factored type. */
    boolean standsIn(int type, double base, boolean exempt) {
        return !exempt && factor < 1 && factors(type) && Double.isNaN(base);
    }

    /** Whether a limit is the floor, below which the factor would have taken it. */
    boolean floored(int type, double base, double stand, boolean exempt) {
        if (shadow || exempt || factor >= 1 || !factors(type)) return false;
        double whole = Double.isNaN(base) ? stand : base;
        return Double.isNaN(whole) ? factor <= 0 : whole > floor(type) && whole * factor < floor(type);
    }

    double floor(int type) {
        return switch (TYPES[type]) {
            case PRODUCE, FETCH -> floorBytes;
            case REQUEST -> FLOOR_REQUEST;
            default -> FLOOR_MUTATION;
        };
    }
}
