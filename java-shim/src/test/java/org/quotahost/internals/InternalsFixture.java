package org.quotahost.internals;

import org.apache.kafka.common.requests.AbstractRequest;

/** The replacements of Kafka's internals in tests, since kafka_2.13.jar is not on their class path. */
public final class InternalsFixture {
    private static final ThreadLocal<Request> CURRENT = new ThreadLocal<>();

    private InternalsFixture() {}

    /** Sets what was found; null for nothing. */
    static <T> void find(Internals.Internal<T> use, T instead) {
        use.tried = true;
        use.found = instead;
        use.why = null;
        use.lacksSince = 0;
    }

    /** Kafka's request that this thread handles. */
    public record Request(AbstractRequest loggableRequest, int sizeInBytes) {}

    /** Makes this thread handle a request of 1 MB with this body, on a Kafka that mutes; null for a Kafka that shows no request. */
    public static void handles(AbstractRequest body) {
        handles(body, 1_000_000);
    }

    /** Does the same with a request of so many bytes. */
    public static void handles(AbstractRequest body, int bytes) {
        try {
            find(Internals.REQUESTS, body == null ? null : new Requests(CURRENT, Request.class));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        CURRENT.set(body == null ? null : new Request(body, bytes));
        find(Internals.MUTE, true);
    }

    /** Uses these meters as Kafka's. */
    public static void meters(Meters meters) {
        find(Internals.METERS, meters);
    }
}
