package org.quotahost.inbox;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * What the host takes at once: clients to resolve, then events. Python reads names from the bytes and answers by
 * position, so a name never has to survive the way there and back.
 *
 * <p>Format: how many texts (u32, big-endian), the length of each in code points (u32 each), all texts in UTF-8
 * without a break. The texts: how many clients; each principal and client-id; each event's kind, how many fields,
 * the fields. One decoding and a slice a text is the quickest way into Python.
 */
public final class Batch {
    /** A client asked for: when it was first missed, 0 if it is asked for again. */
    public record Asked(String principal, String clientId, long since) {}

    /** Anything else: what happened and its particulars. */
    record Event(String kind, List<String> fields) {}

    private final List<Asked> clients;
    private final List<Event> events;

    public Batch(List<Asked> clients, List<Event> events) {
        this.clients = clients;
        this.events = events;
    }

    public List<Asked> clients() {
        return clients;
    }

    List<Event> events() {
        return events;
    }

    public byte[] bytes() {
        List<String> texts = texts();
        var utf8 = new ByteArrayOutputStream(32 * texts.size());
        // Each by itself: halves of a surrogate pair in two texts would become one code point, and shift all names after.
        for (String text : texts) utf8.writeBytes(text.getBytes(StandardCharsets.UTF_8));
        ByteBuffer out = ByteBuffer.allocate((1 + texts.size()) * Integer.BYTES + utf8.size());
        out.putInt(texts.size());
        for (String text : texts) out.putInt(text.codePointCount(0, text.length()));
        return out.put(utf8.toByteArray()).array();
    }

    private List<String> texts() {
        List<String> texts = new ArrayList<>(2 * clients.size() + 16);
        texts.add(Integer.toString(clients.size()));
        for (Asked client : clients) {
            texts.add(client.principal());
            texts.add(client.clientId());
        }
        for (Event event : events) {
            texts.add(event.kind());
            texts.add(Integer.toString(event.fields().size()));
            texts.addAll(event.fields());
        }
        return texts;
    }
}
