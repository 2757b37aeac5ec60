package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;

/** The busiest clients are found, however many there are, with a bounded number of readings for each look. */
class BusiestClientsTest {
    private static final int CLIENTS = 10_000;

    private final BusiestClients busiest = new BusiestClients();
    private final double[] rates = new double[CLIENTS];
    private final List<Usage> used = new ArrayList<>();
    private int readings;

    private List<String> look(int most) {
        readings = 0;
        return busiest.of(used, most, usage -> {
            readings++;
            return new Usage.Measured(usage, rates[Integer.parseInt(usage.clientId())], 0);
        }).stream().map(measured -> measured.usage().clientId()).toList();
    }

    private void clients(int count) {
        for (int n = 0; n < count; n++) {
            used.add(new Usage(ClientQuotaType.PRODUCE, "alice", "" + n, null, 1.0, 0));
            rates[n] = n;
        }
    }

    @Test
    void aThousandAreAllRead() {
        clients(1_000);
        assertEquals(List.of("999", "998", "997"), look(3));
        assertEquals(1_000, readings);
    }

    @Test
    void ofTenThousandATenthAndTheBusiestAreRead() {
        clients(CLIENTS);
        for (int i = 0; i < 10; i++) {
            look(100);
            assertTrue(readings < 1_500, "%d readings".formatted(readings));
        }
        assertEquals(List.of("9999", "9998", "9997"), look(100).subList(0, 3));
        assertEquals("9900", look(100).get(99));
    }

    @Test
    void aClientThatGetsBusyIsFoundWithinOneRoundAndOneThatGetsQuietLeaves() {
        clients(CLIENTS);
        for (int i = 0; i < 10; i++) look(100);
        rates[17] = 1e9;
        rates[9_999] = 0;
        boolean found = false;
        for (int i = 0; i < 10; i++) found |= look(100).get(0).equals("17");

        assertTrue(found);
        assertEquals(List.of("17", "9998"), look(100).subList(0, 2));
    }

    @Test
    void noClientsAreNoMistake() {
        assertEquals(List.of(), look(100));
    }
}
