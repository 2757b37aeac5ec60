package org.quotahost;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.quotahost.fence.FenceFixture;

/** A fence, and Kafka's own StandardAuthorizer to compare it with: both get the same properties and ACLs. */
final class AclOracle implements AutoCloseable {
    private final Metrics metrics = new Metrics();
    final StandardAuthorizer kafkas = new StandardAuthorizer();
    final QuotaFence fence;

    AclOracle(Map<String, String> properties) {
        fence = FenceFixture.fence("", properties);
        kafkas.configure(properties);
        Plugin.wrapInstance(kafkas, metrics, "authorizer.class.name", "role", "broker");
    }

    /** Loads ACLs as a broker gets them: the first half as a snapshot, the rest one by one; some are removed again. */
    void load(List<AclBinding> all, Collection<Integer> removed) {
        Map<Uuid, StandardAcl> snapshot = new HashMap<>();
        List<Uuid> ids = new ArrayList<>();
        for (int i = 0; i < all.size(); i++) ids.add(new Uuid(7, i + 1));
        int half = all.size() / 2;
        for (int i = 0; i < half; i++) snapshot.put(ids.get(i), StandardAcl.fromAclBinding(all.get(i)));
        for (ClusterMetadataAuthorizer each : List.of(kafkas, fence)) {
            each.loadSnapshot(snapshot);
            for (int i = half; i < all.size(); i++) each.addAcl(ids.get(i), StandardAcl.fromAclBinding(all.get(i)));
            removed.stream().filter(at -> at < all.size()).forEach(at -> each.removeAcl(ids.get(at)));
            each.completeInitialLoad();
        }
    }

    static List<AclBinding> acls(ClusterMetadataAuthorizer authorizer) {
        List<AclBinding> found = new ArrayList<>();
        authorizer.acls(AclBindingFilter.ANY).forEach(found::add);
        return found;
    }

    static AclBinding binding(String user, String topic) {
        return new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                new AccessControlEntry("User:" + user, "*", AclOperation.WRITE, AclPermissionType.ALLOW));
    }

    @Override
    public void close() throws IOException {
        fence.close();
        kafkas.close();
        metrics.close();
    }
}
