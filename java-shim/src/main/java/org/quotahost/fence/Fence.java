package org.quotahost.fence;

import java.net.InetAddress;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.internals.Mute;
import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether this broker takes produce requests; Exemptions says whose it takes in any case.
 *
 * <p>The quota table closes and opens the fence with the state PAUSE, the topic quotas hand it the topics whose
 * requests are turned back, and the authorizer (QuotaFence) asks it about each request. All of it is static, since
 * Kafka makes the authorizer and the quota callback apart from each other, in one JVM.
 */
public final class Fence {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    private static final short PRODUCE = ApiKeys.PRODUCE.id;
    private static final short FETCH = ApiKeys.FETCH.id;
    /** A volume at its hard limit may close the fence four times a second. */
    static final int LINES_PER_MINUTE = 20;
    /** Every client sends the request again; THROTTLING_QUOTA_EXCEEDED would be fatal to librdkafka. */
    private static final RuntimeException CLOSED = Errors.NOT_ENOUGH_REPLICAS.exception("quotahost has paused writing,"
            + " since disks of this cluster are full or their state is unknown; try again");

    /**
     * How many requests a closed fence has turned back since the start of this JVM, and would have but for the factor in
     * shadow; and the bytes of the former's record batches.
     */
    public static final LongAdder rejections = new LongAdder(), shadowed = new LongAdder(), rejectedBytes = new LongAdder();

    private static final AtomicInteger installed = new AtomicInteger();
    private static volatile Rules rules = new Rules(false, null, null);
    private static volatile Addresses addresses;
    private static volatile boolean shadow;
    private static volatile double allowance;
    static LineLimit lines = new LineLimit(LINES_PER_MINUTE);
    private static boolean loggedClosed;

    private Fence() {}

    /** The topics with a replica on a volume above its soft limit. Request threads ask: no lock. */
    public interface Affected {
        /**
         * Marks a client that is not exempt, asks to write to the topic, and may, if the topic is affected.
         *
         * @return whether requests to the topic are turned back while the fence is closed
         */
        boolean mark(KafkaPrincipal principal, String clientId, String topic);
    }

    /** Keeps from where clients write and read: only an authorizer sees addresses. Request threads call: no lock. */
    public interface Addresses {
        void seen(KafkaPrincipal principal, String clientId, InetAddress address);
    }

    /** The topics whose produce requests are turned back now, whoever sends them. Request threads ask: no lock. */
    public interface Topics {
        /**
         * The error with which a request is turned back, which TurnedBack is told, or null to let it through.
         *
         * @param results what the inner authorizer answered to the actions, in their order; only a topic to which the
         *     client may write can turn the request back
         */
        RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
                List<AuthorizationResult> results);
    }

    /**
     * Which requests are turned back; replaced as a whole.
     *
     * @param closed the requests of all clients but the exempt, or only those to held topics
     * @param affected the topics whose writers are marked, and which of them are held; null if a closed fence holds all
     * @param topics otherwise the requests to these topics; null for none
     */
    private record Rules(boolean closed, Affected affected, Topics topics) {}

    /** Whether the requests of all clients but the exempt are turned back, or only those to held topics. */
    public static boolean closed() {
        return rules.closed;
    }

    /**
     * The error with which a request is turned back, or null to let it through.
     *
     * <p>Only a request that may write to some topic is turned back, or marks its client as one that writes there. A
     * transactional produce first asks whether it may use its transactional id; a client that may not must get that
     * answer, and not the advice to try again.
     *
     * @param results what the inner authorizer answered to the actions, in their order
     */
    public static RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        Addresses seen = addresses;
        int request = context.requestType();
        if (seen != null && (request == PRODUCE || request == FETCH)) {
            seen.seen(context.principal(), context.clientId(), context.clientAddress());
        }
        Rules now = rules;
        if (!now.closed && now.affected == null && now.topics == null) return null;
        Mute.unmark();
        if (request != PRODUCE || Exemptions.exempt(context.principal(), context.clientId())) return null;
        boolean writes = false;
        boolean held = false;
        // One topic that the fence protects holds the whole request up.
        for (int i = 0; i < results.size(); i++) {
            String topic = writable(actions.get(i), results.get(i));
            if (topic == null || Exemptions.spares(topic)) continue;
            writes = true;
            held |= now.affected == null || now.affected.mark(context.principal(), context.clientId(), topic);
        }
        if (!writes) return null;
        // Super users keep their quotas, those of topics, too.
        if (now.closed && held && !Exemptions.isSuperUser(context.principal())) {
            if (!shadow) {
                rejections.increment();
                TurnedBack.note(context, actions, results, "", allowance, rejectedBytes);
                return CLOSED;
            }
            shadowed.increment();
        }
        return now.topics == null ? null : now.topics.error(context, actions, results);
    }

    /** The topic to which the client may write by this action of a produce request, or null if it is none. */
    public static String writable(Action action, AuthorizationResult result) {
        ResourcePattern resource = action.resourcePattern();
        boolean topic = resource.resourceType() == ResourceType.TOPIC;
        return topic && result == AuthorizationResult.ALLOWED ? resource.name() : null;
    }

    // ---- the table and the topic quotas ----------------------------------------------------------------------

    /** Closes or opens the fence for those who write to these topics; null for all clients. */
    public static synchronized void state(boolean closed, Affected affected) {
        Rules now = rules;
        if (now.closed != closed || now.affected != affected) rules = new Rules(closed, affected, now.topics);
        // A state that was left out is logged as soon as a line may be written: the table says it again and again.
        if (closed == loggedClosed || lines.pass() == LineLimit.NO) return;
        loggedClosed = closed;
        if (!closed) LOG.info("The fence is open: produce requests go on");
        else LOG.warn("The fence is closed: produce requests{} are {}",
                affected != null ? " to topics on full volumes" : "", shadow ? "only counted, since the factor is in shadow"
                        : "answered with NOT_ENOUGH_REPLICAS, and nothing of them is appended");
    }

    /** Who is told of addresses from now on; null for nobody. */
    public static void addresses(Addresses to) {
        addresses = to;
    }

    /** Replaces the topics whose requests are turned back; null for none. */
    public static synchronized void turnBack(Topics topics) {
        rules = new Rules(rules.closed, rules.affected, topics);
    }

    /** While the factor is in shadow a closed fence turns no request back, it only counts them. */
    public static void shadow(boolean on) {
        shadow = on;
    }

    public static boolean inShadow() {
        return shadow;
    }

    /** How many bytes/s a principal may send on while the fence is closed, before its connections are muted. */
    public static void allowance(double bytesPerSecond) {
        allowance = bytesPerSecond;
    }

    /** A broker's authorizer in this JVM begins to ask the fence. */
    public static void install() {
        installed.incrementAndGet();
    }

    public static void uninstall() {
        installed.decrementAndGet();
    }

    /** Whether a broker's authorizer in this JVM asks the fence; without one, closing it has no effect. */
    public static boolean installed() {
        return installed.get() > 0;
    }
}
