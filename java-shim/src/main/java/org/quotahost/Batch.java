package org.quotahost;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * What the host takes at once: clients to resolve, then events. Python reads names from the bytes and answers by
 * position, so a name never has to survive the way there and back.
 *
 * <p>Format, big-endian: number of clients u32, each principal and client-id; number of events u32, each
 * kind (string), number of fields u32, fields. A string is its UTF-8 length u32 and its bytes.
 */
public final class Batch {
    /** A client asked for: when it was first missed, 0 if it is asked for again. */
    record Asked(String principal, String clientId, long since) {}

    /** Anything else: what happened and its particulars. */
    record Event(String kind, List<String> fields) {}

    final List<Asked> clients;
    final List<Event> events;

    Batch(List<Asked> clients, List<Event> events) {
        this.clients = clients;
        this.events = events;
    }

    public byte[] bytes() {
        var out = new ByteArrayOutputStream(64 + 48 * clients.size());
        number(out, clients.size());
        for (Asked client : clients) {
            string(out, client.principal());
            string(out, client.clientId());
        }
        number(out, events.size());
        for (Event event : events) {
            string(out, event.kind());
            number(out, event.fields().size());
            event.fields().forEach(field -> string(out, field));
        }
        return out.toByteArray();
    }

    private static void number(ByteArrayOutputStream out, int value) {
        out.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(value).array());
    }

    private static void string(ByteArrayOutputStream out, String value) {
        byte[] text = value.getBytes(StandardCharsets.UTF_8);
        number(out, text.length);
        out.writeBytes(text);
    }
}
