package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import org.quotahost.python.StartException;
import org.quotahost.util.BrokerConfigs;

/**
 * Has the Python host check new properties and take them over, while the broker runs.
 *
 * <p>Only the request of the administrator who changes the properties waits for the host's verdict; if none comes in
 * time, the change is refused. Nobody waits when Kafka applies what is stored: Python takes it over or keeps the
 * properties that it has, and says so in the log. Those that it has confirmed last are what the next Python of this JVM
 * starts with.
 */
public final class Reconfiguration {
    private static final long ANSWER_MS = 2_000;

    private final HostQuestions questions;
    /** The properties that Kafka has applied and Python has not judged yet, by ticket. */
    private final ConcurrentSkipListMap<Long, Map<String, String>> applied = new ConcurrentSkipListMap<>();
    private volatile Map<String, String> confirmed;
    private volatile Set<String> names = Set.of();

    /** @param properties those of the start */
    Reconfiguration(HostQuestions questions, Map<String, String> properties) {
        this.questions = questions;
        this.confirmed = properties;
    }

    /** The properties that may change while the broker runs; empty until the host is ready. */
    public Set<String> names() {
        return names;
    }

    void names(List<String> reconfigurable) {
        names = Set.copyOf(reconfigurable);
    }

    /** The properties that Python has taken over last; those of the start, if there was no change. */
    Map<String, String> confirmed() {
        return confirmed;
    }

    /** For an administrator's request: StartException if the host refuses the properties or doesn't answer in time. */
    public void check(BrokerConfigs config) {
        String problem = questions.ask("validate", fields(config), ANSWER_MS);
        if (problem == null) {
            throw new StartException("the Python host did not check the change within " + ANSWER_MS
                    + " ms; the old properties stay. Try again");
        }
        if (!problem.isEmpty()) throw new StartException(problem);
    }

    /** Has the host take over what Kafka applies. It waits for nothing. */
    void apply(BrokerConfigs config) {
        String ticket = questions.ticket();
        applied.put(Long.valueOf(ticket), config.properties());
        questions.post("reconfigure", ticket, fields(config));
    }

    /** @param problem why the host refuses the properties of this ticket, null if it does not */
    void verdict(String ticket, String problem) {
        Long number = Long.valueOf(ticket);
        Map<String, String> properties = applied.get(number);
        if (properties != null) {
            applied.headMap(number, true).clear(); // Python takes events in order, so earlier ones are settled, too
            if (problem == null) confirmed = properties;
        }
        questions.answer(ticket, problem == null ? "" : problem);
    }

    private static List<String> fields(BrokerConfigs config) {
        return List.of(BrokerConfigs.flat(config.properties()));
    }
}
