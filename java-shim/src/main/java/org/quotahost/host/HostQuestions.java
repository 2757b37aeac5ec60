package org.quotahost.host;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.quotahost.inbox.Inbox;

/**
 * Questions that only the Python host can answer: they go to it as events with a ticket, its answer comes back with the
 * same one.
 *
 * <p>Java never calls Python, so who asks waits here: an administrator who changes properties, who asks at the admin
 * socket, or a reader of JMX. A request of a client never does.
 */
final class HostQuestions {
    private final Inbox inbox;
    private final AtomicLong tickets = new AtomicLong();
    /** The questions that somebody waits for, by ticket. */
    private final Map<String, CompletableFuture<String>> open = new ConcurrentHashMap<>();

    HostQuestions(Inbox inbox) {
        this.inbox = inbox;
    }

    /**
     * Asks, and waits for the answer; any thread but the host's.
     *
     * @param kind the event's kind, by which the host knows what is asked
     * @param fields what follows the ticket
     * @return the answer, or null if none came in time; a host that is silent that long does not get the question later
     */
    String ask(String kind, List<String> fields, long timeoutMs) {
        String ticket = ticket();
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
            if (open.remove(ticket) != null && !answer.isDone()) inbox.withdraw(kind, ticket);
        }
    }

    /** The host's answer; one that comes too late is for nobody. */
    void answer(String ticket, String text) {
        CompletableFuture<String> waiting = open.get(ticket);
        if (waiting != null) waiting.complete(text);
    }

    /** A ticket that no question has had. */
    String ticket() {
        return Long.toString(tickets.incrementAndGet());
    }

    /** Posts an event with a ticket, for whose answer nobody waits. */
    void post(String kind, String ticket, List<String> fields) {
        List<String> all = new ArrayList<>(fields);
        all.add(0, ticket);
        inbox.postEvent(kind, all);
    }
}
