package org.quotahost.host;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Fence;
import org.quotahost.table.FactorInForce;
import org.quotahost.table.LimitRule;
import org.quotahost.table.QuotaTable;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.util.Escape;

/**
 * The state that all clients share, as lines of a name and a value: the answer of the MBean QuotaTable's operation
 * explain.
 *
 * <p>The names are part of the protocol between the jar and {@code quotahost explain}, which must be of the same
 * version.
 */
final class TableState {
    /** The gauge State shows the ordinal. */
    enum State { OPEN, THROTTLE, PAUSE }

    private TableState() {}

    static State state(double factor) {
        return factor >= 1 ? State.OPEN : factor > 0 ? State.THROTTLE : State.PAUSE;
    }

    /**
     * The mode, the factor in force and its cause, the limits' factor, the fence, whether it lets this client pass, the
     * topics; at the end how many topics are affected (-1: the factor is for all clients), and how many clients marked.
     */
    static String[] lines(QuotaTable table, Lease lease, TopicQuotas topics, String principal, String clientId) {
        LimitRule rule = table.rule();
        boolean fallback = lease.expired();
        FactorInForce.Factor host = table.factorInForce().hostFactor();
        double factor = fallback ? table.factorInForce().value() : host.value();
        return Stream.of(
                List.of("mode", rule.shadow() ? "shadow" : "enforce"),
                List.of("state", state(factor)),
                List.of("factor", factor),
                List.of("limit-factor", table.factorInForce().limitFactor()),
                List.of("cause", fallback ? lease.cause() : host.cause()),
                List.of("fallback", fallback),
                List.of("factor-types",
                        rule.factored().stream().map(Enum::name).sorted().collect(Collectors.joining(","))),
                List.of("fence-installed", Fence.installed()),
                List.of("fence-closed", Fence.closed()),
                List.of("fence-passes", Fence.passes(principal, clientId)),
                List.of("creation-refused", Creation.refused()),
                List.of("topics-threshold", topics.threshold()),
                List.of("topics-rate", topics.rate()),
                List.of("topics-over", String.join(",", topics.over())),
                List.of("topics-in-shadow", String.join(",", topics.overInShadow())),
                List.of("shadow", String.join(",", table.shadows().rules())),
                List.of("clients", table.size()),
                List.of("clients-max", table.clientsMax()),
                List.of("affected-topics", table.affectedTopics()),
                List.of("marked", table.marked())
        ).map(pair -> Escape.fields(pair.toArray())).toArray(String[]::new);
    }
}
