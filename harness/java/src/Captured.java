package harness;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Keeps what a Kafka tool prints to System.out, so that it can be returned to the caller. */
final class Captured {
    private static final ByteArrayOutputStream BYTES = new ByteArrayOutputStream();

    static final PrintStream OUT = new PrintStream(BYTES, true, StandardCharsets.UTF_8);

    private Captured() { }

    /** Returns all that was printed since the last call. */
    static String take() {
        OUT.flush();
        String text = BYTES.toString(StandardCharsets.UTF_8);
        BYTES.reset();
        return text;
    }
}
