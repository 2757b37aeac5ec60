package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** It behaves like a map, and stays quick with names that were chosen to collide. */
class ClientMapTest {
    /**
     * Adding what isn't there and removing what is, in any order, against a map of pairs; few names, so chains are
     * long.
     */
    @Property(tries = 300)
    void itContainsWhatAMapWouldContain(@ForAll @Size(max = 200) List<@IntRange(max = 99) Integer> steps) {
        ClientMap map = new ClientMap(0);
        Map<String, Client> model = new HashMap<>();
        for (int step : steps) {
            String principal = "p" + step / 10;
            String clientId = "c" + step % 10;
            Client known = model.remove(principal + clientId);
            assertSame(known, map.get(principal, clientId));
            if (known != null) map.remove(known);
            else {
                Client fresh = new Client(principal, clientId, 0);
                assertTrue(map.add(fresh));
                model.put(principal + clientId, fresh);
            }
        }
        Map<String, Client> clients = new HashMap<>();
        map.forEach(c -> clients.put(c.principal + c.clientId, c));
        assertEquals(model, clients);
    }

    @Property(tries = 1)
    void namesChosenToCollideCannotMakeLookUpsSlow() {
        ClientMap map = new ClientMap(1_000);
        int added = 0;
        for (int i = 0; i < 1 << 10; i++) {
            StringBuilder name = new StringBuilder();
            for (int bit = 0; bit < 10; bit++) name.append((i >> bit & 1) == 0 ? "Aa" : "BB"); // all of one hash
            if (map.add(new Client("u", name.toString(), 0))) added++;
        }
        assertEquals(ClientMap.LONGEST_CHAIN, added);
        assertNull(map.get("u", "BB".repeat(10)));
        assertFalse(map.add(new Client("u", "AaBB".repeat(5), 0)));
    }
}
