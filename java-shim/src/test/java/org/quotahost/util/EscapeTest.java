package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Any text becomes a field of a line and is read back. */
class EscapeTest {
    @Test
    void anyTextSurvivesALineAndPlainAscii() {
        for (String text : List.of("", "a:b", "\t\\t\\", "ümlaut ☃ 𝄞", "nul\0byte\n\r", "\\u0041")) {
            String line = Escape.ascii(Escape.fields("x", text, "y"));
            assertEquals(true, line.chars().allMatch(c -> c == '\t' || c >= ' ' && c <= '~'), line);
            assertEquals(text, Escape.plain(line.split("\t", -1)[1]));
        }
    }
}
