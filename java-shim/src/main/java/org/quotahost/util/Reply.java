package org.quotahost.util;

import java.util.concurrent.Callable;

/**
 * Answers for Python without an exception: JPype would make a Python class of each new kind of exception on the thread
 * that meets it first, and crashes the JVM if that is shutting down meanwhile.
 */
public final class Reply {
    private Reply() {}

    /** "" and the lines, or only what went wrong: kinds and messages down to the first cause, in one line. */
    public static String[] lines(Callable<String[]> question) {
        try {
            String[] lines = question.call();
            String[] answer = new String[lines.length + 1];
            answer[0] = "";
            System.arraycopy(lines, 0, answer, 1, lines.length);
            return answer;
        } catch (Exception | LinkageError e) {
            if (e instanceof InterruptedException) Thread.currentThread().interrupt();
            return new String[] {told(e)};
        }
    }

    private static String told(Throwable e) {
        Throwable cause = e;
        while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        return (cause.getClass().getSimpleName() + ": " + cause.getMessage()).replaceAll("\\s+", " ");
    }
}
