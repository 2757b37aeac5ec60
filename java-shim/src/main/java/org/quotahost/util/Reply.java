package org.quotahost.util;

import java.util.concurrent.Callable;

/**
 * A reply to a question of Python's, in which a failure is a text and never an exception.
 *
 * <p>JPype makes a Python class of each kind of Java exception on the thread that meets it first. If the JVM is
 * shutting down at that moment, this crashes it. Python raises an error of its own instead ({@code bridge.py}).
 */
public final class Reply {
    private Reply() {}

    /**
     * Asks the question.
     *
     * @return an empty text and then the answer's lines; or, if the question failed, one line alone with the class and
     *     message of the first cause
     */
    public static String[] lines(Callable<String[]> question) {
        try {
            String[] lines = question.call();
            String[] reply = new String[lines.length + 1];
            reply[0] = "";
            System.arraycopy(lines, 0, reply, 1, lines.length);
            return reply;
        } catch (Exception | LinkageError e) {
            if (e instanceof InterruptedException) Thread.currentThread().interrupt();
            return new String[] {problem(e)};
        }
    }

    private static String problem(Throwable e) {
        Throwable cause = e;
        while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        return (cause.getClass().getSimpleName() + ": " + cause.getMessage()).replaceAll("\\s+", " ");
    }
}
