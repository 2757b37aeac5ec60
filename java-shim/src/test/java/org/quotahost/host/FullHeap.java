package org.quotahost.host;

/** As where the heap is full for longer: nobody can make a text of it. */
final class FullHeap extends OutOfMemoryError {
    private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
        throw this;
    }
}
