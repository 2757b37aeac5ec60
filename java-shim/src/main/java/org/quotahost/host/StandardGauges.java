package org.quotahost.host;

import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;
import org.quotahost.internals.Internals;
import org.quotahost.internals.KafkaBeans;
import org.quotahost.internals.Meters;
import org.quotahost.internals.Mute;
import org.quotahost.topics.TopicQuotas;
import org.quotahost.util.Schedule;

/** The numbers that every broker with the callback shows (docs/reference/metrics.md). Python and plugins set others. */
final class StandardGauges {
    private StandardGauges() {}

    static void add(PythonHost host) {
        var gauges = host.gauges;
        var table = host.table;
        var factor = table.factorInForce;
        var lease = host.lease;
        var topics = host.topicQuotas;
        gauges.add("QuotaTable", "", "Clients", table::size);
        gauges.add("QuotaTable", "", "ClientsMax", table::clientsMax);
        gauges.add("QuotaTable", "", "Misses", table.misses::sum);
        gauges.add("QuotaTable", "", "Unadmitted", table.unadmitted::sum);
        gauges.add("QuotaTable", "", "Evicted", table.evicted::sum);
        gauges.add("QuotaTable", "", "Changes", table.changes::sum);
        gauges.add("QuotaTable", "", "Factor", factor::value);
        gauges.add("QuotaTable", "", "LimitFactor", factor::limitFactor);
        // 0 OPEN, 1 THROTTLE, 2 PAUSE.
        gauges.add("QuotaTable", "", "State", () -> factor.value() >= 1 ? 0 : factor.value() > 0 ? 1 : 2);
        gauges.add("QuotaTable", "", "AffectedTopics", () -> Math.max(0, table.affectedTopics()));
        gauges.add("QuotaTable", "", "Marked", table::marked);
        gauges.add("QuotaTable", "", "Resolved", table.resolveTime::count);
        gauges.add("QuotaTable", "", "ResolveTimeP50", () -> table.resolveTime.quantile(0.5));
        gauges.add("QuotaTable", "", "ResolveTimeP99", () -> table.resolveTime.quantile(0.99));
        gauges.add("Fence", "", "Installed", () -> Fence.installed() ? 1 : 0);
        gauges.add("Fence", "", "Closed", () -> Fence.closed() ? 1 : 0);
        gauges.add("Fence", "", "Rejections", Fence.rejections::sum);
        gauges.add("Fence", "", "Shadowed", Fence.shadowed::sum);
        gauges.add("Fence", "", "RejectedBytes", Fence.rejectedBytes::sum);
        gauges.add("Fence", "", "Mutes", Mute.count::sum);
        gauges.add("Fence", "", "CreationsRefused", Fence.creationsRefused::sum);
        gauges.add("Fence", "", "CreationsShadowed", Fence.creationsShadowed::sum);
        gauges.add("Inbox", "", "Depth", host.inbox::depth);
        gauges.add("Inbox", "", "Overflow", host.inbox::overflow);
        gauges.add("Lease", "", "Age", lease::ageSeconds);
        gauges.add("Lease", "", "Expired", () -> lease.expired ? 1 : 0);
        gauges.add("Lease", "", "FallbackApplied", () -> lease.applied);
        gauges.add("Host", "", "Restarts", () -> host.lives.restarts);
        gauges.add("Watch", "", "Errors", Schedule::failures);
        for (String software : KafkaBeans.IMPATIENT) {
            gauges.add("ImpatientClients", software, "Connections",
                    () -> KafkaBeans.connections(software, host.config.ownListeners(), System.nanoTime()));
        }
        Internals.ALL.forEach(each -> gauges.add("Internals", each.name(), "Missing", () -> each.missing() ? 1 : 0));
        // Python sets this number, but cannot while it is silent.
        gauges.overrule("Factor", "", "LackOfData",
                () -> lease.expired && factor.value() < factor.hostFactor().value() ? 1 : Double.NaN);
        gauges.add("TopicQuotas", "", "Threshold", topics::threshold);
        gauges.add("TopicQuotas", "", "Rate", topics::rate);
        gauges.add("TopicQuotas", "", "Share", topics::share);
        gauges.add("TopicQuotas", "", "Over", () -> topics.over().size());
        gauges.add("TopicQuotas", "", "Rejections", TopicQuotas.rejections::sum);
        gauges.add("TopicQuotas", "", "Shadowed", TopicQuotas.shadowed::sum);
        gauges.add("TopicQuotas", "", "RejectedBytes", TopicQuotas.rejectedBytes::sum);
        gauges.add("TopicQuotas", "", "Failed", () -> Meters.count("FailedProduceRequestsPerSec"));
        gauges.add("TopicQuotas", "", "FailedBytes", () -> Meters.count("BytesRejectedPerSec"));
    }

    /** Adds the gauges of topics that were turned back and of topics' rules in shadow that have appeared since the last call. */
    static void addNew(PythonHost host) {
        TurnedBack.bytes.forEach((topic, bytes) -> host.gauges.add("TurnedBack", topic, "Bytes", bytes::sum));
        host.topicQuotas.inShadow().forEach((rule, counts) -> {
            host.gauges.add("Shadow", rule, "Over", () -> host.topicQuotas.over(counts));
            host.gauges.add("Shadow", rule, "Unmeasured", () -> 0);
            host.gauges.add("Shadow", rule, "Seconds", counts.seconds()::sum);
            host.gauges.add("Shadow", rule, "Bytes", counts.bytes()::sum);
        });
    }
}
