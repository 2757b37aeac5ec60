package org.quotahost;

import java.util.List;
import java.util.Map;

/** The principals under which brokers of this cluster show up at each other's listeners. */
final class BrokerPrincipal {
    private BrokerPrincipal() {}

    static List<String> names(Map<String, ?> configs) {
        return List.of();
    }
}
