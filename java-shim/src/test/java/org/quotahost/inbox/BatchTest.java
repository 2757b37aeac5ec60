package org.quotahost.inbox;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** The format in which Python reads a batch. */
class BatchTest {
    /** Reads a batch as Python does: the lengths in code points, then all texts as one. */
    private static List<String> read(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        int[] lengths = new int[in.getInt()];
        for (int i = 0; i < lengths.length; i++) lengths[i] = in.getInt();
        String text = StandardCharsets.UTF_8.decode(in).toString();
        List<String> texts = new ArrayList<>();
        int at = 0;
        for (int length : lengths) {
            int end = text.offsetByCodePoints(at, length);
            texts.add(text.substring(at, end));
            at = end;
        }
        assertEquals(text.length(), at, "all of it is used");
        return texts;
    }

    @Property
    void whatGoesInComesOutInItsPlace(@ForAll("texts") List<String> names, @ForAll("texts") List<String> fields) {
        List<Batch.Lookup> clients = names.stream().map(name -> new Batch.Lookup(name, name + "!", 0)).toList();
        List<String> expected = new ArrayList<>(List.of(String.valueOf(clients.size())));
        clients.forEach(client -> expected.addAll(List.of(client.principal(), client.clientId())));
        expected.addAll(List.of("kind", String.valueOf(fields.size())));
        expected.addAll(fields);

        List<String> read = read(new Batch(clients, List.of(new Batch.Event("kind", fields))).bytes());

        assertEquals(expected.stream().map(BatchTest::wellFormed).toList(), read);
    }

    /**
     * The text as UTF-8 can express it: half a surrogate pair, as a principal builder may make it, becomes a question
     * mark.
     */
    private static String wellFormed(String text) {
        return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }

    @Provide
    Arbitrary<List<String>> texts() {
        return Arbitraries.strings().withChars("a:\0é客\ud834\udd1e").ofMaxLength(4).list().ofMaxSize(6);
    }
}
