package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.publish;

import java.util.Arrays;
import java.util.List;
import javax.management.JMException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;

/** The lines about clients' usage: for which clients, in which order, and how long ago each was seen. */
class UsageTest {
    private final QuotaTable table = Tables.table();
    private final KafkaBeans kafka = new KafkaBeans();

    @AfterEach
    void close() {
        kafka.close();
    }

    private void measured(String type, String tags, double rate, double delay) throws JMException {
        kafka.show(type, tags, rate, delay);
    }

    private List<String> usage(int most) {
        String[] lines = table.usage(most);
        assertEquals("", lines[0]);
        return Arrays.asList(lines).subList(1, lines.length);
    }

    @Test
    void theBusiestComeFirstAndNoMoreThanAskedFor() throws JMException {
        for (int n = 1; n <= 3; n++) {
            publish(table, "alice", "app-" + n, Scopes.CLIENT, 1_000);
            measured("Produce", ",user=alice,client-id=app-" + n, n * 100, Double.NaN);
        }
        assertEquals(List.of("PRODUCE\talice\tapp-3\t300.0\t1000.0\t0.0\t0", "PRODUCE\talice\tapp-2\t200.0\t1000.0\t0.0\t0"), usage(2));
    }

    @Test
    void aClientThatSharesItsQuotaOrIsExemptOrUnmeasuredIsLeftOut() throws JMException {
        publish(table, "alice", "app", Scopes.USER, 1_000);
        measured("Produce", ",user=alice", 100, 0);
        publish(table, "bob", "app", Scopes.EXEMPT, Double.NaN);
        measured("Produce", ",user=bob,client-id=app", 100, 0);
        publish(table, "carol", "app", Scopes.CLIENT, 1_000);
        assertEquals(List.of(), usage(10));
    }

    @Test
    void namesArePlainWhateverKafkaMakesOfThemAndSurviveTheWay() throws JMException {
        publish(table, "a:b", "c\t\u00fc", Scopes.CLIENT, Double.NaN);
        measured("Fetch", ",user=a%3Ab,client-id=\"c\t\u00fc\"", 5, 250);
        assertEquals(List.of("FETCH\ta:b\tc\\t\\u00fc\t5.0\tNaN\t250.0\t0"), usage(10));
    }

    @Test
    void silenceIsMeasuredForEachTypeToABeat() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        measured("Produce", ",user=alice,client-id=app", 7, 0);
        measured("Fetch", ",user=alice,client-id=app", 5, 0);
        table.beat(1_000);
        Tables.tags(table, FETCH, "alice", "app");
        table.beat(2_450);
        assertEquals(List.of("PRODUCE\talice\tapp\t7.0\t1000.0\t0.0\t2400", "FETCH\talice\tapp\t5.0\t1000.0\t0.0\t1400"), usage(10));

        Tables.tags(table, PRODUCE, "alice", "app");
        assertEquals("0", usage(1).get(0).split("\t")[6]);
    }

    @Test
    void aClientThatHasBeenSilentForMinutesIsLeftOut() throws JMException {
        publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        measured("Produce", ",user=alice,client-id=app", 7, 0);
        table.beat(Usage.RECENT_MS);
        assertEquals(1, usage(10).size());
        table.beat(Usage.RECENT_MS + QuotaTable.BEAT_MS);
        assertEquals(List.of(), usage(10));
    }

    @Test
    void theClockThatBeatsForgetsNobodyBeforeTheIdleTimeHasPassed() {
        QuotaTable some = Tables.table(new Inbox(), 100, 80);
        publish(some, "alice", "app", Scopes.CLIENT, 1_000);
        for (int eighth = 1; eighth <= QuotaTable.TICKS_PER_IDLE; eighth++) {
            for (long ms = 0; ms < 10_000; ms += 100) some.beat((eighth - 1) * 10_000L + ms);
            some.beat(eighth * 10_000L);
            some.tick();
        }
        assertEquals(1, some.size());
        some.beat(90_000);
        some.tick();
        assertEquals(0, some.size());
    }
}
