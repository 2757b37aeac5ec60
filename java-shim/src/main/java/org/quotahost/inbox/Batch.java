package org.quotahost.inbox;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * What the host takes from the inbox at once: clients to resolve, then events.
 *
 * <p>Python reads the names from bytes() and answers by position (QuotaTable.publish), so that no name has to survive
 * the way into Python and back.
 *
 * <p>Format of the bytes: the number of texts (u32, big-endian), the length of each text in code points (u32 each),
 * then all texts in UTF-8 without a separator. The texts are: the number of clients; principal and client-id of each
 * client; then, of each event, its kind, the number of its fields, and the fields. One decoding and one slice for
 * each text is the quickest way into Python.
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

    /** The batch in the format for Python. */
    public byte[] bytes() {
        List<String> texts = texts();
        var utf8 = new ByteArrayOutputStream(32 * texts.size());
        // Each text by itself: two halves of a surrogate pair in neighbouring texts would become one code point, and
        // shift all names behind it.
        for (String text : texts) utf8.writeBytes(text.getBytes(StandardCharsets.UTF_8));
        ByteBuffer out = ByteBuffer.allocate((1 + texts.size()) * Integer.BYTES + utf8.size());
        out.putInt(texts.size());
        for (String text : texts) out.putInt(text.codePointCount(0, text.length()));
        return out.put(utf8.toByteArray()).array();
    }

    private List<String> texts() {
        List<String> texts = new ArrayList<>(2 * clients.size() + 16);
        texts.add(Integer.toString(clients.size()));
        for (Lookup client : clients) {
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
