package org.quotahost.internals;

import java.lang.reflect.Method;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/**
 * Has Kafka mute the connection on which a request was turned back, for one of its quota windows (1 s by default).
 *
 * <p>Once the authorizer has thrown, KafkaApis looks up the client's request quota, for the answer's throttle time, on
 * the same thread (RequestHandlerHelper.sendErrorResponseMaybeThrottle). For a marked request the callback answers that
 * look-up with the tags of a scope of its own (Scopes.turnedBack), whose limit every request exceeds. Kafka then tells the client the
 * longest throttle time of a request quota, quota.window.size.seconds, and reads nothing from the connection meanwhile.
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

    /** This thread's next look-up is of another request, whose connection is not to be muted. */
    public static void unmark() {
        if (marked.get() == null) return;
        marked.set(null);
        Internals.MUTE.failed("it has not asked for the request quota of a request that was turned back");
    }

    /**
     * Whether a look-up of a request quota is for the marked request. The mark is then gone, so what Kafka looks up next, for
     * its metric of throttle times, is the client's own.
     */
    public static boolean isFor(KafkaPrincipal principal) {
        if (principal == null || marked.get() != principal) return false; // by identity, as cheap as can be
        marked.set(null);
        return true;
    }
}
