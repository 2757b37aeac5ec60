package org.quotahost.internals;

import org.apache.kafka.common.requests.AbstractRequest;

/** What a test has in place of Kafka's internals: kafka_2.13.jar is not on the class path of these tests. */
public final class InternalsFixture {
    private static final ThreadLocal<Request> CURRENT = new ThreadLocal<>();

    private InternalsFixture() {}

    /** Takes this for what was found; null for nothing. */
    static <T> void find(Internals.Internal<T> use, T instead) {
        use.tried = true;
        use.found = instead;
        use.why = null;
        use.lacksSince = 0;
    }

    /** What Kafka has of a request; this thread handles it. */
    public record Request(AbstractRequest loggableRequest, int sizeInBytes) {}

    /** This thread handles a request of 1 MB with this body, and Kafka mutes; null for a Kafka that tells nothing. */
    public static void handles(AbstractRequest body) {
        handles(body, 1_000_000);
    }

    /** The same with a request of so many bytes. */
    public static void handles(AbstractRequest body, int bytes) {
        try {
            find(Internals.REQUESTS, body == null ? null : new Requests(CURRENT, Request.class));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        CURRENT.set(body == null ? null : new Request(body, bytes));
        find(Internals.MUTE, true);
    }

    /** Takes these meters for Kafka's. */
    public static void meters(Meters meters) {
        find(Internals.METERS, meters);
    }
}
