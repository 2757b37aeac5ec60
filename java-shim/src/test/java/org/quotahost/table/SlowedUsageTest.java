package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import javax.management.JMException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.FenceFixture;

/** What a slowed client uses: Kafka measures its twin tags apart, and to all who ask it is one client. */
class SlowedUsageTest {
    private final QuotaTable table = Tables.table();
    private final KafkaBeans kafka = new KafkaBeans();

    @BeforeEach
    void slowAlice() {
        var fence = FenceFixture.fence("none", Map.of("super.users", "User:admin"));
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        table.factor(0.5, "full", new String[] {"orders"}, new String[] {"broker 3"}, new boolean[1]);
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write("orders"));
        Tables.tags(table, "alice", "app");
    }

    @AfterEach
    void reset() {
        kafka.close();
        FenceFixture.reset();
    }

    @Test
    void usageAddsTheRatesOfOwnAndTwinTagsAndTellsTheLongerDelayAndTheSlowedLimit() throws JMException {
        kafka.show("Produce", ",user=alice,client-id=app", 100, 20);
        kafka.show("Produce", ",user=\"<slowed alice>\",client-id=app", 30, 250);

        assertArrayEquals(new String[] {"", "PRODUCE\talice\tapp\t130.0\t500.0\t250.0\t0"}, table.usage(10));
    }

    @Test
    void usageIsThatOfTheTwinAloneBeforeAndAfterTheOwnIsMeasured() throws JMException {
        kafka.show("Produce", ",user=\"<slowed alice>\",client-id=app", 30, 250);

        assertArrayEquals(new String[] {"", "PRODUCE\talice\tapp\t30.0\t500.0\t250.0\t0"}, table.usage(10));
    }

    @Test
    void whatAFactorMultipliesForTheUnlimitedIsTheRateOfBoth() throws JMException {
        kafka.show("Produce", ",user=bob", 100, 0);
        kafka.show("Produce", ",user=\"<slowed bob>\"", 30, 0);
        kafka.show("Produce", ",client-id=app", 7, 0);
        kafka.show("Produce", ",user=<slowed>,client-id=app", 5, 0);

        Map<List<String>, Double> rates = KafkaRates.of(ClientQuotaType.PRODUCE);

        assertEquals(130, rates.get(List.of("bob", "")));
        assertEquals(12, rates.get(List.of("", "app")));
    }
}
