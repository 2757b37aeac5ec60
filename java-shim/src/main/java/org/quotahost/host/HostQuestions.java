package org.quotahost.host;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.inbox.Inbox;
import org.quotahost.util.BrokerConfigs;

/**
 * What only the Python host can answer: operators' questions, and whether new properties are valid. Each goes to it as
 * an event with a ticket, and its answer comes back with the same one.
 *
 * <p>Java never calls Python, so who asks waits here: an administrator who changes properties, who asks at the admin
 * socket, or a reader of JMX. A request of a client never waits, and neither does Kafka when it applies what is stored:
 * Python takes it over or keeps the properties that it has, and says so in the log.
 */
public final class HostQuestions {
    private static final long CHECK_MS = 2_000;

    private final Inbox inbox;
    private final AtomicLong tickets = new AtomicLong();
    /** The questions that somebody waits for, by ticket. */
    private final Map<Long, CompletableFuture<String>> open = new ConcurrentHashMap<>();
    /** The properties that Kafka has applied and Python has not judged yet, by ticket. */
    private final ConcurrentSkipListMap<Long, Map<String, String>> applied = new ConcurrentSkipListMap<>();
    private volatile Map<String, String> confirmed;

    /** @param properties those of the start */
    HostQuestions(Inbox inbox, Map<String, String> properties) {
        this.inbox = inbox;
        this.confirmed = properties;
    }

    /**
     * Asks, and waits for the answer; any thread but the host's.
     *
     * @param kind the event's kind, by which the host knows what is asked
     * @param fields what follows the ticket
     * @return the answer, or null if none came in time; a host that is silent that long does not get the question later
     */
    String ask(String kind, List<String> fields, long timeoutMs) {
        long ticket = tickets.incrementAndGet();
        CompletableFuture<String> answer = new CompletableFuture<>();
        open.put(ticket, answer);
        try {
            post(kind, ticket, fields);
            return answer.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        } catch (TimeoutException | ExecutionException e) {
            return null;
        } finally {
            open.remove(ticket);
            if (!answer.isDone()) inbox.withdraw(kind, Long.toString(ticket));
        }
    }

    /** For an administrator's request: ConfigException if the host refuses the properties or doesn't answer in time. */
    void check(BrokerConfigs config) {
        String problem = ask("validate", fields(config), CHECK_MS);
        if (problem == null) {
            throw new ConfigException("the Python host did not check the change within " + CHECK_MS
                    + " ms; the old properties stay. Try again");
        }
        if (!problem.isEmpty()) throw new ConfigException(problem);
    }

    /** Has the host take over what Kafka applies. It waits for nothing. */
    void apply(BrokerConfigs config) {
        long ticket = tickets.incrementAndGet();
        applied.put(ticket, config.properties());
        post("reconfigure", ticket, fields(config));
    }

    /** The properties that Python has taken over last, with which its next life starts. */
    Map<String, String> confirmed() {
        return confirmed;
    }

    /** A host that has started with these properties serves. */
    void confirm(Map<String, String> properties) {
        confirmed = properties;
    }

    /**
     * The host's answer; one that comes too late is for nobody.
     *
     * @param text of properties why they are refused, "" if they are not
     */
    void answer(String ticket, String text) {
        Long number = Long.valueOf(ticket);
        CompletableFuture<String> waiting = open.get(number);
        if (waiting != null) waiting.complete(text);
        Map<String, String> properties = applied.get(number);
        if (properties == null) return;
        applied.headMap(number, true).clear(); // Python takes events in order, so earlier ones are settled, too
        if (text.isEmpty()) confirmed = properties;
    }

    private void post(String kind, long ticket, List<String> fields) {
        List<String> all = new ArrayList<>(fields);
        all.add(0, Long.toString(ticket));
        inbox.postEvent(kind, all);
    }

    private static List<String> fields(BrokerConfigs config) {
        return List.of(BrokerConfigs.flat(config.properties()));
    }
}
