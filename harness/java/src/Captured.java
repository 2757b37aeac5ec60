package harness;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** What a Kafka tool prints to System.out, kept for the one who asked. */
final class Captured {
    private static final ByteArrayOutputStream BYTES = new ByteArrayOutputStream();

    static final PrintStream OUT = new PrintStream(BYTES, true, StandardCharsets.UTF_8);

    private Captured() { }

    /** All that was printed since the last call. */
    static String take() {
        OUT.flush();
        String text = BYTES.toString(StandardCharsets.UTF_8);
        BYTES.reset();
        return text;
    }
}
