package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;

/** The entities that Kafka's client quotas are set for. */
class ClientQuotasTest {
    @Test
    void aUserNamedLikeTheDefaultIsNotTheDefault() {
        ConfigEntity named = entity(ConfigEntityType.USER);
        ConfigEntity standard = entity(ConfigEntityType.DEFAULT_USER);
        assertEquals("name", ClientQuotas.Key.of(ClientQuotaType.PRODUCE, of(named)).userKind());
        assertEquals("default", ClientQuotas.Key.of(ClientQuotaType.PRODUCE, of(standard)).userKind());
    }

    private static ClientQuotaEntity of(ConfigEntity part) {
        return () -> List.of(part);
    }

    private static ConfigEntity entity(ConfigEntityType type) {
        return new ConfigEntity() {
            @Override
            public String name() {
                return "<default>";
            }

            @Override
            public ConfigEntityType entityType() {
                return type;
            }
        };
    }
}
