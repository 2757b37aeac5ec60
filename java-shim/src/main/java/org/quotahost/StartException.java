package org.quotahost;

/** The host cannot start; the message is for the operator. */
final class StartException extends RuntimeException {
    StartException(String message) {
        super(message);
    }

    StartException(String message, Throwable cause) {
        super(message, cause);
    }
}
