package org.quotahost.fence;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.protocol.ApiKeys;
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
    /** A volume at its hard limit may close the fence four times a second. */
    static final int LINES_PER_MINUTE = 20;
    /** THROTTLING_QUOTA_EXCEEDED would be fatal to librdkafka. */
    private static final RuntimeException CLOSED = FenceError.of("NOT_ENOUGH_REPLICAS", "quotahost has paused writing,"
            + " since disks of this cluster are full or their state is unknown; try again");

    private static final LongAdder rejections = new LongAdder();
    private static final LongAdder shadowed = new LongAdder();
    private static final LongAdder rejectedBytes = new LongAdder();
    private static final AtomicInteger installed = new AtomicInteger();
    private static volatile Runnable onInstall = () -> {};
    /** The rules by which requests are turned back, or null. While it is null, a request costs one volatile read. */
    private static volatile Rules rules;
    private static volatile boolean shadow;
    private static volatile double allowance;
    static LineLimit lines = new LineLimit(LINES_PER_MINUTE);
    private static boolean loggedClosed;

    private Fence() {}

    /**
     * The topics whose produce requests are turned back at this moment, whoever sends them. The package topics hands the
     * fence a new one whenever they change; request threads call it, but only while there are any.
     */
    public interface Topics {
        /**
         * The error with which a request is turned back, which Refusal is told, or null to let it through.
         *
         * @param results what the inner authorizer answered to the actions, in their order; only a topic to which the
         *     client may write can turn the request back
         */
        RuntimeException error(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results);
    }

    /**
     * Which requests are turned back; replaced as a whole.
     *
     * @param closed the requests of all clients but the exempt, or only those to held topics
     * @param affected the topics whose writers are marked, and which of them are held; null if a closed fence holds all
     * @param topics otherwise the requests to these topics; null for none
     */
    private record Rules(boolean closed, AffectedTopics affected, Topics topics) {
        static Rules of(boolean closed, AffectedTopics affected, Topics topics) {
            return closed || affected != null || topics != null ? new Rules(closed, affected, topics) : null;
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Whether any request is turned back or marked at this moment. While it is false, this is all that a request costs. */
    public static boolean active() {
        return rules != null;
    }

    /** Whether the fence is closed: the requests of all clients but the exempt are turned back, or those to held topics. */
    public static boolean closed() {
        Rules now = rules;
        return now != null && now.closed;
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
        Mute.unmark();
        Rules now = rules;
        if (now == null || context.requestType() != PRODUCE || !writes(actions, results)) return null;
        if (exempt(context.principal(), context.clientId())) return null;
        // Super users keep their quotas, those of topics, too.
        boolean held = now.affected == null || mark(now.affected, context, actions, results);
        boolean holds = now.closed && held && !Exemptions.isSuperUser(context.principal());
        if (holds && !shadow) {
            rejections.increment();
            Refusal.note(context, actions, results, "", allowance, rejectedBytes);
            return CLOSED;
        }
        if (holds) shadowed.increment();
        return now.topics == null ? null : now.topics.error(context, actions, results);
    }

    /** Marks the client of a request to an affected topic. Answers whether one of its topics is held. */
    private static boolean mark(AffectedTopics affected, AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        boolean held = false;
        for (int i = 0; i < results.size(); i++) {
            String topic = writable(actions.get(i), results.get(i));
            if (topic == null || !affected.affects(topic) || Exemptions.spares(topic)) continue;
            affected.mark(context.principal(), context.clientId(), topic);
            held |= affected.holds(topic);
        }
        return held;
    }

    /** Whether the request may write to a topic that the fence protects; one such topic holds the whole request up. */
    private static boolean writes(List<Action> actions, List<AuthorizationResult> results) {
        for (int i = 0; i < results.size(); i++) {
            String topic = writable(actions.get(i), results.get(i));
            if (topic != null && !Exemptions.spares(topic)) return true;
        }
        return false;
    }

    /** The topic to which the client may write by this action of a produce request, or null if it is none. */
    public static String writable(Action action, AuthorizationResult result) {
        ResourcePattern resource = action.resourcePattern();
        boolean topic = resource.resourceType() == ResourceType.TOPIC;
        return topic && result == AuthorizationResult.ALLOWED ? resource.name() : null;
    }

    /**
     * Whether a client is exempt from quotas and passes the fence (Exemptions). The quota table asks, too, on behalf of
     * clients that it doesn't know; this neither waits nor allocates.
     */
    public static boolean exempt(KafkaPrincipal principal, String clientId) {
        return Exemptions.exempt(principal, clientId);
    }

    // ---- the table and the topic quotas ----------------------------------------------------------------------

    /** Closes or opens the fence for those who write to these topics; null for all clients. */
    public static synchronized void state(boolean closed, AffectedTopics affected) {
        Rules now = rules;
        AffectedTopics before = now == null ? null : now.affected;
        if (closed() != closed || before != affected) rules = Rules.of(closed, affected, topics());
        logState(closed, affected != null);
    }

    /** A state that was left out is logged as soon as a line may be written, since the table says it again and again. */
    private static void logState(boolean closed, boolean some) {
        if (closed == loggedClosed || lines.pass() == LineLimit.NO) return;
        loggedClosed = closed;
        if (!closed) LOG.info("The fence is open: produce requests go on");
        else LOG.warn("The fence is closed: produce requests{} are {}", some ? " to topics on full volumes" : "",
                shadow ? "only counted, since the factor is in shadow"
                        : "answered with NOT_ENOUGH_REPLICAS, and nothing of them is appended");
    }

    /** Replaces the topics whose requests are turned back; null for none. */
    public static synchronized void turnBack(Topics topics) {
        Rules now = rules;
        rules = Rules.of(closed(), now == null ? null : now.affected, topics);
    }

    private static Topics topics() {
        Rules now = rules;
        return now == null ? null : now.topics;
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

    /** Replaces the exempt clients (Exemptions.set). */
    public static void exempt(String[] users, String[] anonymousClientIds, String internalClientIds) {
        Exemptions.set(users, anonymousClientIds, internalClientIds);
    }

    /** Replaces the topics to which requests go on in every state, whoever sends them (Exemptions.spare). */
    public static void spare(String[] topics) {
        Exemptions.spare(topics);
    }

    // ---- the authorizer --------------------------------------------------------------------------------------

    /** Takes the super users from the broker's properties (Exemptions.superUsers). */
    public static void superUsers(Map<String, ?> configs) {
        Exemptions.superUsers(configs);
    }

    /** A broker's authorizer in this JVM begins to ask the fence. */
    public static void install() {
        installed.incrementAndGet();
        onInstall.run();
    }

    /** That authorizer was closed. */
    public static void uninstall() {
        installed.decrementAndGet();
    }

    /** Whether a broker's authorizer in this JVM asks the fence; without one, closing it has no effect. */
    public static boolean installed() {
        return installed.get() > 0;
    }

    /** What to do once an authorizer is installed: the table may have decided on a state before Kafka made it. */
    public static void onInstall(Runnable action) {
        onInstall = action;
    }

    // ---- operators -------------------------------------------------------------------------------------------

    /** Whether a user's requests go on while the fence is closed, whatever the topic. */
    public static boolean passes(String user, String clientId) {
        KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
        return exempt(principal, clientId) || Exemptions.isSuperUser(principal);
    }

    /** How many requests a closed fence has turned back since the start of this JVM. */
    public static long rejections() {
        return rejections.sum();
    }

    /** How many bytes of record batches a closed fence has turned back since the start of this JVM. */
    public static long rejectedBytes() {
        return rejectedBytes.sum();
    }

    /** How many requests a closed fence would have turned back, had the factor not been in shadow. */
    public static long shadowed() {
        return shadowed.sum();
    }
}
