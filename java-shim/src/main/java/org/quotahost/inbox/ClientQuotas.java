package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;

/** Kafka's client quotas as last told, and which of them the host hasn't heard of. Reply by the inbox. */
public final class ClientQuotas {
    /** Whom a quota names; a kind is "" (not named), "default" or "name". */
    public record Key(ClientQuotaType type, String userKind, String user, String clientKind, String client) {
        public static Key of(ClientQuotaType type, ClientQuotaEntity entity) {
            String[] user = {"", ""};
            String[] client = {"", ""};
            for (ClientQuotaEntity.ConfigEntity part : entity.configEntities()) {
                switch (part.entityType()) { // a default's name is "<default>", which a user may be called, too
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
    private final Set<Key> untold = new LinkedHashSet<>();

    void put(Key key, Double rate) {
        Double before = rate == null ? quotas.remove(key) : quotas.put(key, rate);
        if (!java.util.Objects.equals(before, rate)) untold.add(key);
    }

    List<Batch.Event> changed() {
        List<Batch.Event> events = new ArrayList<>();
        for (Key key : untold) {
            Double rate = quotas.get(key);
            events.add(new Batch.Event("client-quota", List.of(key.type().name(), key.userKind(), key.user(),
                    key.clientKind(), key.client(), rate == null ? "" : rate.toString())));
        }
        untold.clear();
        return events;
    }

    void replay() {
        untold.addAll(quotas.keySet());
    }

    void clear() {
        quotas.clear();
        untold.clear();
    }
}
