package org.quotahost.host;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.quotahost.inbox.Inbox;
import org.quotahost.python.StartException;

/**
 * Has the Python host check new properties and take them over, while the broker runs.
 *
 * <p>The check goes to Python through the inbox and comes back as a verdict with the same ticket. Only the request of
 * the administrator who changes the properties waits for it; if no verdict comes in time, the change is refused.
 */
public final class Reconfiguration {
    private static final long ANSWER_MS = 2_000;

    private final Inbox inbox;
    private final AtomicLong tickets = new AtomicLong();
    /** The checks that wait for a verdict, by ticket. */
    private final Map<String, CompletableFuture<String>> open = new ConcurrentHashMap<>();
    private volatile Set<String> names = Set.of();

    Reconfiguration(Inbox inbox) {
        this.inbox = inbox;
    }

    /** The properties that may change while the broker runs; empty until the host is ready. */
    public Set<String> names() {
        return names;
    }

    void names(List<String> reconfigurable) {
        names = Set.copyOf(reconfigurable);
    }

    /** Throws StartException if the host refuses these properties or does not answer in time. */
    public void check(HostConfig config) {
        String ticket = Long.toString(tickets.incrementAndGet());
        CompletableFuture<String> answer = new CompletableFuture<>();
        open.put(ticket, answer);
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
            open.remove(ticket);
        }
    }

    /** Has the host take over properties that it has checked. */
    void apply(HostConfig config) {
        inbox.postEvent("reconfigure", fields("", config));
    }

    /** @param problem why the host refuses the properties, null if it does not */
    void verdict(String ticket, String problem) {
        CompletableFuture<String> answer = open.get(ticket);
        if (answer != null) answer.complete(problem == null ? "" : problem);
    }

    private static List<String> fields(String ticket, HostConfig config) {
        List<String> fields = new ArrayList<>(List.of(ticket));
        fields.addAll(List.of(HostConfig.flat(config.properties())));
        return fields;
    }
}
