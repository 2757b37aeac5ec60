package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** Client quotas and configs by Kafka's Admin client, because librdkafka's has only a part of the Admin API. */
final class AdminTool {

    private AdminTool() { }

    /** args: bootstrap, [{entity: {type: name or null for the default}, set: {key: number or null to remove}}]. */
    static Object alterQuotas(JsonNode args) throws Exception {
        List<ClientQuotaAlteration> alterations = new ArrayList<>();
        args.get(1).forEach(one -> alterations.add(new ClientQuotaAlteration(entity(one.get("entity")), ops(one.get("set")))));
        try (Admin admin = connect(args)) {
            admin.alterClientQuotas(alterations).all().get();
        }
        return null;
    }

    /** args: bootstrap. Returns [{entity, quotas}]; the name of a default entity is null. */
    static Object describeQuotas(JsonNode args) throws Exception {
        try (Admin admin = connect(args)) {
            List<Object> found = new ArrayList<>();
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get()
                .forEach((entity, quotas) -> found.add(Map.of("entity", entity.entries(), "quotas", quotas)));
            return found;
        }
    }

    /** args: bootstrap, resource type, resource name, {key: value or null to go back to the default}. */
    static Object alterConfigs(JsonNode args) throws Exception {
        ConfigResource.Type type = ConfigResource.Type.valueOf(args.get(1).textValue());
        List<AlterConfigOp> ops = new ArrayList<>();
        args.get(3).fields().forEachRemaining(config -> ops.add(configOp(config.getKey(), config.getValue())));
        try (Admin admin = connect(args)) {
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, args.get(2).textValue()), ops)).all().get();
        }
        return null;
    }

    /** args: bootstrap, id of a broker that does not run. */
    static Object unregister(JsonNode args) throws Exception {
        try (Admin admin = connect(args)) {
            admin.unregisterBroker(args.get(1).intValue()).all().get();
        }
        return null;
    }

    /** args: bootstrap, topic, [ids of the brokers for its partition 0, the preferred leader first]. */
    static Object reassign(JsonNode args) throws Exception {
        TopicPartition partition = new TopicPartition(args.get(1).textValue(), 0);
        List<Integer> replicas = new ArrayList<>();
        args.get(2).forEach(broker -> replicas.add(broker.intValue()));
        try (Admin admin = connect(args)) {
            admin.alterPartitionReassignments(
                Map.of(partition, Optional.of(new NewPartitionReassignment(replicas)))).all().get();
        }
        return null;
    }

    private static Admin connect(JsonNode args) {
        return Admin.create(Map.of(
            "bootstrap.servers", args.get(0).textValue(),
            "client.id", "harness",
            "default.api.timeout.ms", "30000"));
    }

    private static ClientQuotaEntity entity(JsonNode named) {
        Map<String, String> entries = new HashMap<>();
        named.fields().forEachRemaining(entry -> entries.put(entry.getKey(), entry.getValue().textValue()));
        return new ClientQuotaEntity(entries);
    }

    private static List<ClientQuotaAlteration.Op> ops(JsonNode set) {
        List<ClientQuotaAlteration.Op> ops = new ArrayList<>();
        set.fields().forEachRemaining(quota -> ops.add(new ClientQuotaAlteration.Op(
            quota.getKey(), quota.getValue().isNull() ? null : quota.getValue().doubleValue())));
        return ops;
    }

    private static AlterConfigOp configOp(String key, JsonNode value) {
        return value.isNull()
            ? new AlterConfigOp(new ConfigEntry(key, null), AlterConfigOp.OpType.DELETE)
            : new AlterConfigOp(new ConfigEntry(key, value.textValue()), AlterConfigOp.OpType.SET);
    }
}
