package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.publish;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which clients the table forgets, and when. */
class QuotaTableEvictionTest {
    private static final int IDLE = QuotaTable.TICKS_PER_IDLE + 1;

    @ParameterizedTest
    @ValueSource(ints = {Scopes.CLIENT, Scopes.USER})
    void silenceUpToTheWholeOfIdleIsForgivenAndNotMoreOfAClientAsOfAPrincipal(int code) {
        QuotaTable table = Tables.table();
        Tables.publishWhole(table, "u", "a", code, 1_000);
        for (int round = 0; round < 2; round++) {
            for (int tick = 0; tick < QuotaTable.TICKS_PER_IDLE; tick++) Tables.tick(table);
            assertEquals(1, table.size());
            Tables.tags(table, PRODUCE, "u", "a");
        }
        for (int tick = 0; tick < IDLE; tick++) Tables.tick(table);
        assertEquals(0, table.size());
        assertEquals(1, table.evicted.sum());
    }

    @Test
    void tagsThatNoClientHasHadForLongAreForgottenToo() {
        QuotaTable table = Tables.table();
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        var tags = new java.util.HashMap<>(Tables.tags(table, PRODUCE, "u", "a"));
        for (int tick = 0; tick < 3 * IDLE; tick++) Tables.tick(table);

        assertEquals(100.0, table.limit(PRODUCE, tags), "as of unknown tags: the newcomers'");
    }

    @Test
    void theNewcomersTagsAreNeverForgotten() {
        QuotaTable table = Tables.table();
        publish(table, "u", "a", Scopes.NEWCOMER, Double.NaN);
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        for (int tick = 0; tick < 3 * IDLE; tick++) Tables.tick(table);

        table.factor(0.5, "", null);
        assertEquals(50.0, table.limit(PRODUCE, table.newcomers()));
    }

    /** A broker may run for years; a beat is a fifth of a second. */
    @Test
    void aClientThatGoesOnIsKnownForYears() {
        QuotaTable table = Tables.table();
        publish(table, "u", "a", Scopes.CLIENT, 1_000);
        publish(table, "w", "a", Scopes.USER, 1_000);
        for (long days = 1; days < 1_500; days += 50) {
            table.beat(days * 86_400_000);
            Tables.tags(table, PRODUCE, "u", "a");
            Tables.tags(table, PRODUCE, "w", "a");
            table.evict();
            assertEquals(2, table.size());
            assertEquals(1_000.0, Tables.limit(table, PRODUCE, "u", "a"));
        }
        for (int tick = 0; tick < IDLE; tick++) Tables.tick(table);
        assertEquals(0, table.size());
    }
}
