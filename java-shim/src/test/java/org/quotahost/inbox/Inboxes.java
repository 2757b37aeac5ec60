package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.quotahost.inbox.Inbox.Batch;

/** Reads inboxes in tests. */
public final class Inboxes {
    private Inboxes() {}

    /** Takes all clients that wait in an inbox, each as "principal/client-id". */
    public static List<String> drain(Inbox inbox) {
        List<String> names = new ArrayList<>();
        for (Batch batch = inbox.take(0); !batch.clients().isEmpty(); batch = inbox.take(0)) {
            batch.clients().forEach(c -> names.add(c.principal() + "/" + c.clientId()));
        }
        return names;
    }

    /** Returns the entity of a user. */
    public static ClientQuotaEntity user(ConfigEntityType type, String name) {
        return () -> List.of(new ClientQuotaEntity.ConfigEntity() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public ConfigEntityType entityType() {
                return type;
            }
        });
    }

    /** Waits for events, and takes them. */
    public static List<Batch.Event> awaitEvents(Inbox inbox) {
        return inbox.take(10_000).events();
    }
}
