package org.quotahost.table;

import java.util.Locale;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;

/**
 * By what a client is held back now. This is the one place where it is decided: explain, top, the metrics and JMX show
 * what is decided here.
 */
enum Bound {
    NOTHING, QUOTA, FACTOR, FLOOR, FENCE, TOPIC_QUOTA;

    /** A client at its limit swings around it, since Kafka measures in samples. */
    private static final double NEAR = 0.9;

    /** As operators read it. */
    String word() {
        return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    /**
     * What turns a client's produce requests back: the closed fence, or lately topic quotas; else NOTHING.
     *
     * @param topic the affected topic for which the client is marked, or null
     * @param affected null while the factor is for all clients
     */
    static Bound turnsBack(String principal, String clientId, String topic, Affected affected) {
        boolean closed = Fence.closed() && !Fence.inShadow() && !Fence.passes(principal, clientId);
        if (closed && (affected == null || topic != null && affected.holds(topic))) return FENCE;
        return TurnedBack.byTopics(principal, clientId) ? TOPIC_QUOTA : NOTHING;
    }

    /**
     * What bounds a client whose requests are let in: the floor, the factor or the quota if Kafka delays it or it is near
     * its limit, else NOTHING. Kafka counts the delay of a forwarded mutation as one of requests, which says nothing of
     * the request quota; of mutations, the tokens alone count.
     */
    static Bound limits(Description quota, KafkaRates.Reading now) {
        if (quota.limit() == null) return NOTHING;
        boolean delayed = now.delayMs() > 0 && quota.type() != ClientQuotaType.REQUEST;
        boolean holds = quota.type() == ClientQuotaType.CONTROLLER_MUTATION ? now.tokens() < 0
                : delayed || now.rate() >= NEAR * quota.limit();
        if (!holds) return NOTHING;
        if (quota.floored()) return FLOOR;
        double whole = Double.isNaN(quota.base()) ? quota.standIn() : quota.base();
        return Double.isNaN(whole) || quota.limit() < whole ? FACTOR : QUOTA;
    }
}
