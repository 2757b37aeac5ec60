package org.quotahost;

import java.util.Collection;
import java.util.List;
import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/** A broker with these listeners; none of them starts early. */
record ServerInfo(List<Endpoint> endpoints) implements AuthorizerServerInfo {
    @Override
    public ClusterResource clusterResource() {
        return new ClusterResource("cluster");
    }

    @Override
    public int brokerId() {
        return 1;
    }

    @Override
    public Endpoint interBrokerEndpoint() {
        return endpoints.get(0);
    }

    @Override
    public Collection<String> earlyStartListeners() {
        return List.of();
    }
}
