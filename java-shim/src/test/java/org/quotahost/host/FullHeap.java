package org.quotahost.host;

/** An error as if the heap were full for longer: its text cannot be made. */
final class FullHeap extends OutOfMemoryError {
    private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
        throw this;
    }
}
