package org.quotahost.explain;

/**
 * Why no broker could be asked.
 *
 * <p>The command line tool ({@code quotahost explain}) has a remedy for each kind; the message gives the details.
 */
final class ExplainException extends Exception {
    private static final long serialVersionUID = 1;

    private final String kind;

    ExplainException(String kind, String details) {
        super(details);
        this.kind = kind;
    }

    /** One of no-jdk, none, several, refused, no-jvm, no-quotahost, older, failed. */
    String kind() {
        return kind;
    }
}
