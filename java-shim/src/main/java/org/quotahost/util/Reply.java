package org.quotahost.util;

import java.util.concurrent.Callable;
import java.util.stream.Stream;

/**
 * A reply to a question of Python's, in which a failure is a text and never an exception.
 *
 * <p>JPype makes a Python class of each kind of Java exception on the thread that meets it first. If the JVM is
 * shutting down at that moment, this crashes it. Python raises an error of its own instead ({@code bridge.py}).
 */
public final class Reply {
    private Reply() {}

    /** An empty text and then the answer's lines; or, if the question failed, one line alone: the first cause. */
    public static String[] lines(Callable<String[]> question) {
        try {
            return Stream.concat(Stream.of(""), Stream.of(question.call())).toArray(String[]::new);
        } catch (Exception | LinkageError e) {
            if (e instanceof InterruptedException) Thread.currentThread().interrupt();
            Throwable cause = e;
            while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
            return new String[] {(cause.getClass().getSimpleName() + ": " + cause.getMessage()).replaceAll("\\s+", " ")};
        }
    }
}
