package org.quotahost.table;

import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * Makes of a base rate the limit that Kafka gets: null (unlimited) or a finite number above 0.
 *
 * <p>Kafka's throttle time is (rate - bound) / bound x window, without a cap (ClientQuotaManager, QuotaUtils), so no
 * factor may take a limit below the floor. A base rate that is itself below the floor stays as the operator set it.
 * Scopes applies the rule to all tags whenever it changes.
 *
 * @param factor 0..1, multiplies the base rates of the factored types; of an unlimited client its measured rate
 * @param produceFactor the same for PRODUCE, which a PAUSE leaves as it was if the fence turns requests back
 * @param floorBytes bytes/s below which no factor takes PRODUCE or FETCH
 * @param aim the factor that these two are on their way to
 * @param opens for which types clients without a quota are unlimited, though the factors may still be on their way to 1:
 *     they have no rate to rise to
 * @param factored the types that the factor multiplies
 * @param shadow nothing is enforced: every limit is null
 * @param slowed the rule for those who write to affected topics, while the factor is for them only; else null
 */
public record LimitRule(double factor, double produceFactor, double aim, Opens opens, double floorBytes,
        Set<ClientQuotaType> factored, boolean shadow, LimitRule slowed) {
    static final LimitRule DEFAULT = new LimitRule(1, 1, 35_000, Set.of(ClientQuotaType.PRODUCE), false);
    /** A share of the whole limit: the scope does not rise. */
    static final double WHOLE = 1;
    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();
    /** The floors of the types without bytes: one percent of a thread, and one mutation in ten seconds. */
    private static final double FLOOR_REQUEST = 1.0;
    private static final double FLOOR_MUTATION = 0.1;

    /** For which types clients without a quota are unlimited. */
    record Opens(boolean produce, boolean others) {}

    /** A rule for all clients, whose limits have arrived at the factor. */
    LimitRule(double factor, double produceFactor, double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
        this(factor, produceFactor, factor, new Opens(produceFactor >= 1, factor >= 1), floorBytes, factored, shadow, null);
    }

    boolean factors(int type) {
        return type < TYPES.length && factored.contains(TYPES[type]);
    }

    /** The factor that a type's limits are made with: a fence that holds a PAUSE leaves those of PRODUCE alone. */
    private double factorOf(int type) {
        return TYPES[type] == ClientQuotaType.PRODUCE ? produceFactor : factor;
    }

    /**
     * The factor for a scope that began with empty windows not long ago and so rises. What the others of its kind have is
     * the most: they may be on their way up themselves.
     */
    private double factorOf(int type, double share) {
        return share >= WHOLE ? factorOf(type) : Math.min(factorOf(type), aim * share);
    }

    /**
     * The limit for a base rate.
     *
     * @param base NaN for unlimited
     * @param standIn the rate that the factor multiplies if the base rate is NaN; NaN if nothing is known
     * @param share which share of it is given (0..1) while the scope rises (Tap.rise)
     */
    Double limit(int type, double base, double standIn, boolean exempt, double share) {
        if (shadow || exempt) return null;
        boolean unlimited = Double.isNaN(base);
        double own = factorOf(type, share);
        if (own >= 1 || !factors(type)) return unlimited ? null : base;
        if (unlimited && share >= WHOLE && opens(type)) return null;
        double whole = unlimited ? standIn : base;
        if (Double.isNaN(whole)) return own > 0 ? null : Double.valueOf(floor(type));
        return Math.max(Math.min(whole, floor(type)), whole * own);
    }

    Double limit(int type, double base, double standIn, boolean exempt) {
        return limit(type, base, standIn, exempt, WHOLE);
    }

    /** Whether the factor multiplies the stand-in, since the client is unlimited. */
    boolean usesStandIn(int type, double base, boolean exempt) {
        return !exempt && factorOf(type) < 1 && factors(type) && Double.isNaN(base) && !opens(type);
    }

    private boolean opens(int type) {
        return TYPES[type] == ClientQuotaType.PRODUCE ? opens.produce : opens.others;
    }

    /** Whether a limit is the floor, below which the factor would have taken it. */
    boolean floored(int type, double base, double standIn, boolean exempt) {
        double own = factorOf(type);
        if (shadow || exempt || own >= 1 || !factors(type) || Double.isNaN(base) && opens(type)) return false;
        double whole = Double.isNaN(base) ? standIn : base;
        return Double.isNaN(whole) ? own <= 0 : whole > floor(type) && whole * own < floor(type);
    }

    /** The lowest limit that a factor may make: bytes/s, percent of a thread, or mutations/s. */
    double floor(int type) {
        return switch (TYPES[type]) {
            case PRODUCE, FETCH -> floorBytes;
            case REQUEST -> FLOOR_REQUEST;
            default -> FLOOR_MUTATION;
        };
    }
}
