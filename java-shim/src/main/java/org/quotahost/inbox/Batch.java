package org.quotahost.inbox;

import java.util.ArrayList;
import java.util.List;

/**
 * What the host takes from the inbox at once: clients to resolve, then events.
 *
 * <p>Python answers by position (QuotaTable.publish), so that no name has to survive the way into Python and back.
 */
public record Batch(List<Lookup> clients, List<Event> events) {
    public static final Batch EMPTY = new Batch(List.of(), List.of());

    /**
     * A client for the host to resolve.
     *
     * @param postedAt when a request first missed it (System.nanoTime), or 0 if the host asked for it again by itself
     */
    public record Lookup(String principal, String clientId, long postedAt) {
        /** Whether a request waits for the answer. */
        public boolean posted() {
            return postedAt != 0;
        }
    }

    /** Anything else that happened: its kind, and its particulars in an order that the kind defines. */
    public record Event(String kind, List<String> fields) {}

    /** Principal and client-id of each client; then, of each event, its kind, the number of its fields, and these. */
    public String[] texts() {
        List<String> texts = new ArrayList<>(2 * clients.size() + 16);
        for (Lookup client : clients) {
            texts.add(client.principal());
            texts.add(client.clientId());
        }
        for (Event event : events) {
            texts.add(event.kind());
            texts.add(Integer.toString(event.fields().size()));
            texts.addAll(event.fields());
        }
        return texts.toArray(String[]::new);
    }
}
