package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** An administrator's request is told from Kafka applying what is stored; stacks are those of Kafka 4.0.0 and 4.3.1. */
class CallerTest {
    private static final String[] COMMON = {
        "org.quotahost.PythonQuotaCallback", "kafka.server.DynamicClientQuotaCallback", "java.util.Optional",
        "kafka.server.DynamicBrokerConfig", "kafka.server.DynamicBrokerConfig$$Lambda/0x00007f2b2c5a1c00",
    };

    private static boolean administrator(String... below) {
        return Caller.isAdministrator(Stream.concat(Stream.of(COMMON), Stream.of(below)));
    }

    @Test
    void aRequestThatAltersConfigsIsAnAdministrators() {
        assertTrue(administrator("kafka.server.ConfigAdminManager", "kafka.server.KafkaApis",
                "kafka.server.KafkaRequestHandler", "java.lang.Thread"));
        assertTrue(administrator("kafka.server.ConfigAdminManager$$anonfun$preprocess$1", "java.lang.Thread"));
        assertTrue(administrator("org.apache.kafka.server.config.ConfigAdminManager", "java.lang.Thread"),
                "in a later Kafka it may have another package");
    }

    @Test
    void whateverElseCallsIsKafkaThatApplies() {
        assertFalse(administrator("kafka.server.BrokerConfigHandler", "kafka.server.metadata.DynamicConfigPublisher",
                "org.apache.kafka.image.loader.MetadataLoader", "org.apache.kafka.queue.KafkaEventQueue", "java.lang.Thread"));
        assertFalse(administrator("kafka.server.BrokerConfigHandler", "kafka.server.DynamicBrokerConfig$",
                "kafka.server.BrokerServer", "kafka.server.KafkaRaftServer", "kafka.Kafka"));
        assertFalse(administrator("some.later.Kafka"));
        assertFalse(administrator());
        assertFalse(Caller.isAdministrator());
    }

    @Test
    void aRequestThatIsAppliedOnTheSameThreadIsKafkas() {
        assertFalse(administrator("kafka.server.metadata.DynamicConfigPublisher", "kafka.server.KafkaRequestHandler"));
    }
}
