package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.function.Consumer;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.quotahost.inbox.Inbox;

/** Tests that Kafka's sensors always measure by the table's limits, since quotaResetRequired is true in time. */
class KafkaSensorsTest {
    private static final int PRODUCE = 0;
    private static final int SENSOR_LIFE = 3_600;

    /** One event in a broker's life; its text is shown if the property fails. */
    record Step(String text, Consumer<Broker> action) {
        @Override
        public String toString() {
            return text;
        }
    }

    static final class Broker {
        final QuotaTable table;
        final KafkaSensors kafka;
        final int idleSeconds;

        Broker(int idleSeconds) {
            this.idleSeconds = idleSeconds;
            table = Tables.table(new Inbox(), 4, idleSeconds);
            int secondsPerTick = idleSeconds / QuotaTable.TICKS_PER_IDLE;
            kafka = new KafkaSensors(table, PRODUCE, SENSOR_LIFE / secondsPerTick);
        }
    }

    @Property(tries = 1_000)
    void noRequestIsMeasuredByAStaleLimit(@ForAll("steps") List<Step> steps, @ForAll("idles") int idle) {
        Broker broker = new Broker(idle);
        for (Step step : steps) {
            step.action.accept(broker);
            for (String user : List.of("u", "v")) {
                if (step.text.contains("silent " + user)) continue;
                Double limit = Tables.limit(broker.table, PRODUCE, user, "a");
                assertEquals(limit, broker.kafka.request(user, "a"), () -> "after " + step + " for " + user);
            }
        }
    }

    @Provide
    Arbitrary<Integer> idles() {
        return Arbitraries.of(SENSOR_LIFE, SENSOR_LIFE / 8);
    }

    @Provide
    Arbitrary<List<Step>> steps() {
        Arbitrary<String> user = Arbitraries.of("u", "v");
        Arbitrary<Integer> code = Arbitraries.of(0, 1, 2, 3, Scopes.NEWCOMER, Scopes.GROUP);
        Arbitrary<Double> rate = Arbitraries.of(5.0, 1_000.0, 2_000.0, Double.NaN);
        Arbitrary<Step> published = Combinators.combine(user, code, rate).as(KafkaSensorsTest::published);
        Arbitrary<Step> factor = Arbitraries.of(0.0, 0.5, 1.0).map(f -> new Step("factor " + f, b -> b.table.factor(f, "", null)));
        Arbitrary<Step> fallback = Arbitraries.of(0.0, 1.0).injectNull(0.5)
                .map(f -> new Step("fallback " + f, b -> b.table.fallback(f)));
        Arbitrary<Step> silence = Combinators.combine(user, Arbitraries.integers().between(1, 30)).as(KafkaSensorsTest::silence);
        Arbitrary<Step> newcomers = Arbitraries.of(100.0, 200.0, Double.NaN).map(KafkaSensorsTest::newcomers);
        return Arbitraries.oneOf(published, published, factor, fallback, silence, newcomers).list().ofMaxSize(40);
    }

    private static Step published(String user, int code, double rate) {
        return new Step("publish " + user + " " + code + " " + rate,
                b -> Tables.publish(b.table, user, "a", code, code == Scopes.NEWCOMER ? Double.NaN : rate, "group"));
    }

    /** Lets one user send no request for so many ticks while the other user goes on. */
    private static Step silence(String user, int ticks) {
        String other = user.equals("u") ? "v" : "u";
        return new Step("silent " + user + " for " + ticks, b -> {
            for (int i = 0; i < ticks; i++) {
                b.kafka.tick();
                b.kafka.request(other, "a");
            }
        });
    }

    private static Step newcomers(double rate) {
        double[] rates = {rate, rate, rate, rate};
        return new Step("newcomers " + rate, b -> b.table.configure(4, b.idleSeconds, 10, new String[] {"PRODUCE"}, rates, Tables.ALL));
    }
}
