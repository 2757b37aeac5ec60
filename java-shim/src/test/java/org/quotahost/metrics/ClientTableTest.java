package org.quotahost.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.openmbean.CompositeData;
import org.junit.jupiter.api.Test;

/** JMX's table of clients, made of the lines of the Python host. */
class ClientTableTest {
    private static List<Object> row(CompositeData row) {
        return List.of(row.getAll(
                new String[] {"user", "client_id", "scope", "type", "Rate", "Quota", "Limit", "Share", "DelayMs", "Bound"}));
    }

    @Test
    void aLineIsARowWhateverTheNamesAre() {
        var table = new ClientTable(() -> "CN%3Da%20b%2B%C3%A4 %0A%09 client PRODUCE 1.5 NaN 3.0 NaN 0.0 shadow%3A%20factor\n"
                + "  broker FETCH 1.0 2.0 2.0 0.5 7.0 topic%20quota").read();
        assertEquals(List.of("CN=a b+ä", "\n\t", "client", "PRODUCE", 1.5, Double.NaN, 3.0, Double.NaN, 0.0, "shadow: factor"),
                row(table.get(new Object[] {"CN=a b+ä", "\n\t", "client", "PRODUCE"})));
        assertEquals(List.of("", "", "broker", "FETCH", 1.0, 2.0, 2.0, 0.5, 7.0, "topic quota"),
                row(table.get(new Object[] {"", "", "broker", "FETCH"})));
    }

    @Test
    void namesThatAreOneBeyondPythonAreOneRow() {
        String line = "%3F app client PRODUCE 1.0 2.0 2.0 0.5 0.0 nothing\n";
        assertEquals(1, new ClientTable(() -> line + line).read().size());
    }

    @Test
    void itAsksSeldomAndIsEmptyWhileTheHostDoesNotAnswer() {
        AtomicInteger asked = new AtomicInteger();
        var table = new ClientTable(() -> {
            asked.incrementAndGet();
            return "{\"error\": \"the Python host did not answer\"}";
        });
        assertEquals(0, table.read().size());
        assertEquals(0, table.read().size());
        assertEquals(1, asked.get());
    }
}
