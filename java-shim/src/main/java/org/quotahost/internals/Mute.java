package org.quotahost.internals;

import java.lang.reflect.Method;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/**
 * Makes Kafka mute the connection on which a request was turned back, for one of its quota windows (1 s by default).
 *
 * <p>After the authorizer has thrown, KafkaApis looks up the client's request quota on the same thread, for the answer's
 * throttle time (RequestHandlerHelper.sendErrorResponseMaybeThrottle). For a marked request the callback answers this look-up
 * with the tags of a special scope (Scopes.turnedBack), whose limit every request exceeds. Kafka then tells the client the
 * longest throttle time of a request quota, quota.window.size.seconds, and meanwhile reads nothing from the connection.
 */
public final class Mute {
    /** The principal of the request that this thread has just turned back. */
    private static final ThreadLocal<KafkaPrincipal> marked = new ThreadLocal<>();
    public static final LongAdder count = new LongAdder();

    private Mute() {}

    static boolean ofKafka() throws ReflectiveOperationException {
        Class<?> helper = Class.forName("kafka.server.RequestHandlerHelper", false, Mute.class.getClassLoader());
        for (Method each : helper.getMethods()) if (each.getName().equals("sendErrorResponseMaybeThrottle")) return true;
        throw new NoSuchMethodException("RequestHandlerHelper.sendErrorResponseMaybeThrottle");
    }

    public static void mark(KafkaPrincipal principal) {
        marked.set(principal);
        count.increment();
    }

    /** Removes the mark, since this thread's next look-up is for another request, whose connection must not be muted. */
    public static void unmark() {
        if (marked.get() == null) return;
        marked.set(null);
        Internals.MUTE.failed("Kafka did not look up the request quota of a request that was turned back");
    }

    /**
     * Returns whether a look-up of a request quota is for the marked request, and removes the mark. So Kafka's next look-up,
     * for its metric of throttle times, gets the client's own tags.
     */
    public static boolean isFor(KafkaPrincipal principal) {
        if (principal == null || marked.get() != principal) return false; // compared by identity, which is cheapest
        marked.set(null);
        return true;
    }
}
