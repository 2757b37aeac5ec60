package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

/** The form of calls on the way from Python. */
class WireTest {
    /** The same in test_protocol.py: what Python writes is read here. */
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

    @Property
    void whateverIsCutGoesOnOrIsNoMessageIsRefusedAndNothingElseHappens(@ForAll byte[] bytes) {
        try {
            Wire.decode(bytes);
        } catch (IllegalArgumentException e) {
            assertThrows(IllegalArgumentException.class, () -> Calls.read(bytes));
        }
    }

    @Test
    void aMessageThatIsCutIsRefused() {
        byte[] whole = HexFormat.of().parseHex(GOLDEN);
        for (int length = 0; length < whole.length; length++) {
            byte[] cut = Arrays.copyOf(whole, length);
            assertThrows(IllegalArgumentException.class, () -> Wire.decode(cut));
        }
    }
}
