package org.quotahost.util;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Captures the log lines of an action: the tests' SLF4J writes to System.err. */
public final class LogCapture {
    private LogCapture() {}

    /** Returns the log lines of an action, as one text. */
    public static String during(Runnable action) {
        PrintStream before = System.err;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        System.setErr(new PrintStream(out, true, StandardCharsets.UTF_8));
        try {
            action.run();
        } finally {
            System.setErr(before);
        }
        return out.toString(StandardCharsets.UTF_8);
    }

    /** Returns how many of the lines contain a text. */
    public static long lines(String log, String with) {
        return log.lines().filter(line -> line.contains(with)).count();
    }
}
