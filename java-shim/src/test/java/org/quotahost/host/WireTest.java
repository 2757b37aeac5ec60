package org.quotahost.host;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.api.Test;

/** The form of calls and answers on the way between Java and Python. */
class WireTest {
    /** The same in test_bridge.py: what one language writes the other one reads. */
    private static final String GOLDEN = "4c0000000a530000000361736b4e5449fffffffffffffffe443fe00000000000005300000009"
            + "c3a9e5aea2f09d849e420000000200ff690000000200000001ffffffff64000000013ff80000000000004c0000000253000000004c00000000";

    @Test
    void pythonsBytesAreRead() {
        List<?> values = (List<?>) Wire.decode(HexFormat.of().parseHex(GOLDEN));

        assertEquals(Arrays.asList("ask", null, true, -2L, 0.5, "é客𝄞"), values.subList(0, 6));
        assertArrayEquals(new byte[] {0, -1}, (byte[]) values.get(6));
        assertArrayEquals(new int[] {1, -1}, (int[]) values.get(7));
        assertArrayEquals(new double[] {1.5}, (double[]) values.get(8));
        assertEquals(List.of("", List.of()), values.get(9));
    }

    @Test
    void whatAnAnswerHasIsWrittenAsPythonReadsIt() {
        byte[] written = Wire.encode(new Object[] {"ask", null, true, -2, 0.5, "é客𝄞", new byte[] {0, -1}, List.of("", List.of())});

        String hex = HexFormat.of().formatHex(written);
        assertEquals(GOLDEN.substring(10, 108), hex.substring(10, 108));
        assertEquals("4c0000000253000000004c00000000", hex.substring(108));
    }

    /** The same in test_protocol.py. */
    @Test
    void textsAreWrittenAtOnceAsPythonReadsThem() {
        byte[] written = Wire.encode(new String[] {"é客𝄞", "", "a"});

        assertEquals("74000000030000000300000000000000010000000ac3a9e5aea2f09d849e61", HexFormat.of().formatHex(written));
    }

    /** Half a surrogate pair, as a principal builder may make it, becomes a question mark, also next to its other half. */
    @Property
    void eachTextStaysInItsPlace(@ForAll("names") List<String> names) {
        ByteBuffer in = ByteBuffer.wrap(Wire.encode(names.toArray(String[]::new)), 5, 4 * names.size());
        String[] expected = names.stream().map(name -> new String(name.getBytes(UTF_8), UTF_8)).toArray(String[]::new);

        for (String name : expected) assertEquals(name.codePointCount(0, name.length()), in.getInt());
        byte[] written = Wire.encode(names.toArray(String[]::new));
        int begin = 9 + 4 * names.size();
        assertEquals(String.join("", expected), new String(written, begin, written.length - begin, UTF_8));
    }

    @Provide
    Arbitrary<List<String>> names() {
        return Arbitraries.strings().withChars("a:\0é客\ud834\udd1e").ofMaxLength(4).list().ofMaxSize(6);
    }

    @Property
    void whateverIsCutGoesOnOrIsNoMessageIsRefusedAndNothingElseHappens(@ForAll byte[] bytes) {
        try {
            Wire.decode(bytes);
        } catch (IllegalArgumentException e) {
            assertThrows(IllegalArgumentException.class, () -> Calls.read(bytes));
        }
    }

    @Property
    void aMessageThatIsCutIsRefused(@ForAll String text, @ForAll long number) {
        byte[] whole = Wire.encode(List.of(text, number));
        assertEquals(number, ((List<?>) Wire.decode(whole)).get(1));
        for (int length = 0; length < whole.length; length++) {
            byte[] cut = Arrays.copyOf(whole, length);
            assertThrows(IllegalArgumentException.class, () -> Wire.decode(cut));
        }
    }
}
