package org.quotahost.host;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.quotahost.inbox.Inbox;
import org.quotahost.python.StartException;
import org.quotahost.util.BrokerConfigs;

/**
 * Has the Python host check new properties and take them over, while the broker runs.
 *
 * <p>Properties go to Python through the inbox, and its verdict comes back with the same ticket. Only the request of
 * the administrator who changes the properties waits for one; if none comes in time, the change is refused. Nobody
 * waits when Kafka applies what is stored: Python takes it over or keeps the properties that it has, and says so in the
 * log. Those that it has confirmed last are what the next Python of this JVM starts with.
 */
public final class Reconfiguration {
    private static final long ANSWER_MS = 2_000;

    private final Inbox inbox;
    private final AtomicLong tickets = new AtomicLong();
    /** The checks that wait for a verdict, by ticket. */
    private final Map<Long, CompletableFuture<String>> checks = new ConcurrentHashMap<>();
    /** The properties that Kafka has applied and Python has not judged yet, by ticket. */
    private final ConcurrentSkipListMap<Long, Map<String, String>> applied = new ConcurrentSkipListMap<>();
    private volatile Map<String, String> confirmed;
    private volatile Set<String> names = Set.of();

    /** @param properties those of the start */
    Reconfiguration(Inbox inbox, Map<String, String> properties) {
        this.inbox = inbox;
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
        long ticket = tickets.incrementAndGet();
        CompletableFuture<String> answer = new CompletableFuture<>();
        checks.put(ticket, answer);
        try {
            inbox.postEvent("validate", fields(ticket, config));
            String problem = answer.get(ANSWER_MS, TimeUnit.MILLISECONDS);
            if (!problem.isEmpty()) throw new StartException(problem);
        } catch (TimeoutException e) {
            throw new StartException("the Python host did not check the change within " + ANSWER_MS
                    + " ms; the old properties stay. Try again", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StartException("interrupted while the Python host checked the change", e);
        } catch (ExecutionException e) {
            throw new StartException("the change could not be checked: " + e.getCause(), e);
        } finally {
            checks.remove(ticket);
        }
    }

    /** Has the host take over what Kafka applies. It waits for nothing. */
    void apply(BrokerConfigs config) {
        long ticket = tickets.incrementAndGet();
        applied.put(ticket, config.properties());
        inbox.postEvent("reconfigure", fields(ticket, config));
    }

    /** @param problem why the host refuses the properties of this ticket, null if it does not */
    void verdict(String ticket, String problem) {
        Long number = Long.valueOf(ticket);
        Map<String, String> properties = applied.get(number);
        if (properties != null) {
            applied.headMap(number, true).clear(); // Python takes events in order, so earlier ones are settled, too
            if (problem == null) confirmed = properties;
        }
        CompletableFuture<String> answer = checks.get(number);
        if (answer != null) answer.complete(problem == null ? "" : problem);
    }

    private static List<String> fields(long ticket, BrokerConfigs config) {
        List<String> fields = new ArrayList<>(List.of(Long.toString(ticket)));
        fields.addAll(List.of(BrokerConfigs.flat(config.properties())));
        return fields;
    }
}
