package org.quotahost.python;

/**
 * The Python host cannot start, or refuses a change of properties. The message is for the operator and says what to
 * do.
 */
public final class StartException extends RuntimeException {
    private static final long serialVersionUID = 1;

    public StartException(String message) {
        super(message);
    }

    public StartException(String message, Throwable cause) {
        super(message, cause);
    }
}
