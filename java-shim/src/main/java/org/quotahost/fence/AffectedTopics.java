package org.quotahost.fence;

import org.apache.kafka.common.security.auth.KafkaPrincipal;

/**
 * The topics with a replica on a volume above its soft limit, and who is told of requests to them.
 *
 * <p>The quota table implements it and hands the fence a new one whenever they change. Request threads call it, but only
 * while a factor is for such topics: no lock, and no allocation but for a client that is new to it.
 */
public interface AffectedTopics {
    boolean affects(String topic);

    /** Whether requests to an affected topic are turned back while the fence is closed. */
    boolean holds(String topic);

    /** Notes that a client that is not exempt asks to write to an affected topic and may. */
    void mark(KafkaPrincipal principal, String clientId, String topic);
}
