package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.quotahost.Given.NEWCOMERS;
import static org.quotahost.Given.PRODUCE;
import static org.quotahost.Given.answer;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The tags as Kafka's own callback gives them (ClientQuotaManager.DefaultQuotaCallback). */
class QuotaTableTagsTest {
    private final QuotaTable table = Given.table(100);

    @ParameterizedTest
    @CsvSource({
        "alice, app, alice",
        "a:b, x:y, a%3Ab",
        "a/b, x/y, a%2Fb",
        "'CN=a, O=b', app, CN%3Da%2C%20O%3Db",
        "* ~, app, %2A%20%7E",
        "zoë, 客户, zo%C3%AB",
        "'<newcomers>', app, %3Cnewcomers%3E",
    })
    void theUserIsSanitizedAndTheClientIdIsNot(String principal, String clientId, String user) {
        answer(table, principal, clientId, Scopes.CLIENT, 1_000_000);

        Map<String, String> tags = table.tags(PRODUCE, principal, clientId);

        assertEquals(List.of("user", "client-id"), List.copyOf(tags.keySet()));
        assertEquals(List.of(user, clientId), List.copyOf(tags.values()));
        assertEquals(List.of(Map.entry("user", user), Map.entry("client-id", clientId)), List.copyOf(tags.entrySet()));
    }

    @Test
    void anEmptyClientIdStaysEmpty() {
        answer(table, "alice", "", Scopes.CLIENT, 1_000_000);

        assertEquals(Map.of("user", "alice", "client-id", ""), table.tags(PRODUCE, "alice", ""));
    }

    @Test
    void theyAreAMapLikeAnyOther() {
        answer(table, "alice", "app", Scopes.CLIENT, 1_000_000);
        Map<String, String> tags = table.tags(PRODUCE, "alice", "app");
        Map<String, String> copy = new HashMap<>(tags);

        assertEquals(copy, tags);
        assertEquals(tags, copy);
        assertEquals(copy.hashCode(), tags.hashCode());
        assertEquals("alice", tags.get("user"));
        assertEquals("app", tags.get("client-id"));
        assertEquals(null, tags.get("group"));
        assertEquals("{user=alice, client-id=app}", tags.toString());
    }

    @Test
    void aMapOfSomeoneElsesWithTheSameTagsHasTheSameLimit() {
        answer(table, "a:b", "app", Scopes.CLIENT, 1_000_000);
        Map<String, String> foreign = new LinkedHashMap<>();
        foreign.put("user", "a%3Ab");
        foreign.put("client-id", "app");

        assertNotSame(foreign, table.tags(PRODUCE, "a:b", "app"));
        assertEquals(1_000_000, table.limit(PRODUCE, foreign));
    }

    @Test
    void tagsThatNobodyHasHaveTheNewcomersLimit() {
        answer(table, "alice", "app", Scopes.CLIENT, 1_000_000);

        assertEquals(NEWCOMERS, table.limit(PRODUCE, Map.of("user", "alice", "client-id", "other")));
        assertEquals(NEWCOMERS, table.limit(PRODUCE, Map.of("user", "bob", "client-id", "app")));
        assertEquals(NEWCOMERS, table.limit(PRODUCE, Map.of("user", "alice")));
        assertEquals(NEWCOMERS, table.limit(PRODUCE, Map.of()));
    }
}
