package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * Kafka's own client quotas (kafka-configs.sh --alter --entity-type users/clients), as Kafka set them last, and which
 * of them the host has not taken yet.
 *
 * <p>A combined node has two callbacks, which both report each quota, and a host that starts again needs all of them
 * once more. So the inbox keeps the quotas here and hands the host only differences. Only the inbox uses it, under
 * its lock.
 */
public final class ClientQuotas {
    /** The entity that a quota is set for; each of its two kinds is "" (not named), "default" or "name". */
    public record Key(ClientQuotaType type, String userKind, String user, String clientKind, String client) {
        public static Key of(ClientQuotaType type, ClientQuotaEntity entity) {
            String[] user = {"", ""};
            String[] client = {"", ""};
            for (ClientQuotaEntity.ConfigEntity part : entity.configEntities()) {
                // The kind decides, not the name: Kafka names a default "<default>", and a user may be called so, too.
                switch (part.entityType()) {
                    case USER -> user = new String[] {"name", part.name()};
                    case DEFAULT_USER -> user = new String[] {"default", ""};
                    case CLIENT_ID -> client = new String[] {"name", part.name()};
                    case DEFAULT_CLIENT_ID -> client = new String[] {"default", ""};
                }
            }
            return new Key(type, user[0], user[1], client[0], client[1]);
        }
    }

    private final Map<Key, Double> quotas = new LinkedHashMap<>();
    private final Set<Key> unreported = new LinkedHashSet<>();

    /** @param rate bytes/s, percent or mutations/s by the quota's type; null if the quota was removed */
    void put(Key key, Double rate) {
        Double before = rate == null ? quotas.remove(key) : quotas.put(key, rate);
        if (!Objects.equals(before, rate)) unreported.add(key);
    }

    /** Takes an event for each quota that changed since the last call; its rate is "" if the quota was removed. */
    List<Batch.Event> takeChanges() {
        List<Batch.Event> events = new ArrayList<>();
        for (Key key : unreported) {
            Double rate = quotas.get(key);
            events.add(new Batch.Event("client-quota", List.of(key.type().name(), key.userKind(), key.user(),
                    key.clientKind(), key.client(), rate == null ? "" : rate.toString())));
        }
        unreported.clear();
        return events;
    }

    /** Has takeChanges() report every quota once more. */
    void replay() {
        unreported.addAll(quotas.keySet());
    }
}
