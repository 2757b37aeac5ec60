package org.quotahost.fence;

import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Pattern;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.brokerlog.BrokerLog;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether this broker takes produce requests, and which clients may produce in any case.
 *
 * <p>The quota table closes and opens the fence with the state PAUSE, the topic quotas hand it the topics whose
 * requests are turned back, and the authorizer (QuotaFence) asks it about each request. All of it is static, since
 * Kafka makes the authorizer and the quota callback apart from each other, in one JVM.
 */
public final class Fence {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    private static final short PRODUCE = ApiKeys.PRODUCE.id;
    private static final String ANONYMOUS = "ANONYMOUS";

    private static final LongAdder rejections = new LongAdder();
    private static final LongAdder shadowed = new LongAdder();
    private static final AtomicInteger installed = new AtomicInteger();
    private static volatile Runnable onInstall = () -> {};
    /** The rules by which requests are turned back, or null. While it is null, a request costs one volatile read. */
    private static volatile Rules rules;
    private static volatile boolean shadow;
    private static volatile Exempt exempt = new Exempt(Set.of(), Set.of(), null);

    private Fence() {}

    /**
     * Which requests are turned back; replaced as a whole.
     *
     * @param closed the requests of all clients but the exempt
     * @param topics otherwise the requests to these topics; null for none
     */
    private record Rules(boolean closed, TurnedBackTopics topics) {
        static Rules of(boolean closed, TurnedBackTopics topics) {
            return closed || topics != null ? new Rules(closed, topics) : null;
        }
    }

    /** The clients that are never turned back; replaced as a whole. The pattern is null where brokers authenticate. */
    private record Exempt(Set<String> principals, Set<String> anonymousClientIds, Pattern internalClientIds) {
        boolean contains(String principal, String clientId) {
            if (principals.contains(principal)) return true;
            if (clientId == null || !principal.equals(ANONYMOUS)) return false;
            return anonymousClientIds.contains(clientId)
                    || internalClientIds != null && internalClientIds.matcher(clientId).matches();
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Whether any request is turned back at this moment. While it is false, this is all that a request costs. */
    public static boolean active() {
        return rules != null;
    }

    /** Whether the fence is closed: the requests of all clients but the exempt are turned back. */
    public static boolean closed() {
        Rules now = rules;
        return now != null && now.closed;
    }

    /**
     * The error with which a request is turned back, or null to let it through.
     *
     * <p>Only a request that may write to some topic is turned back. A transactional produce first asks whether it
     * may use its transactional id; a client that may not must get that answer, and not the advice to try again.
     *
     * @param results what the inner authorizer answered to the actions, in their order
     */
    public static RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        Rules now = rules;
        if (now == null || context.requestType() != PRODUCE || !writes(actions, results)) return null;
        if (exempt.contains(context.principal().getName(), context.clientId())) return null;
        if (!now.closed) return now.topics.error(actions, results, shadow);
        (shadow ? shadowed : rejections).increment();
        return shadow ? null : FenceClosedException.INSTANCE;
    }

    private static boolean writes(List<Action> actions, List<AuthorizationResult> results) {
        for (int i = 0; i < results.size(); i++) {
            boolean topic = actions.get(i).resourcePattern().resourceType() == ResourceType.TOPIC;
            if (topic && results.get(i) == AuthorizationResult.ALLOWED) return true;
        }
        return false;
    }

    // ---- the table and the topic quotas ----------------------------------------------------------------------

    /** Closes the fence: produce requests are turned back, but for those of the exempt. */
    public static synchronized void close() {
        BrokerLog.install();
        if (closed()) return;
        rules = Rules.of(true, topics());
        LOG.warn("The fence is closed: produce requests are {}", shadow ? "only counted (mode=shadow)"
                : "answered with NOT_ENOUGH_REPLICAS, and nothing of them is appended");
    }

    /** Opens the fence; the topics whose requests are turned back stay. */
    public static synchronized void open() {
        if (!closed()) return;
        rules = Rules.of(false, topics());
        LOG.info("The fence is open: produce requests go on");
    }

    /** Replaces the topics whose requests are turned back; null for none. */
    public static synchronized void turnBack(TurnedBackTopics topics) {
        if (topics != null) BrokerLog.install();
        rules = Rules.of(closed(), topics);
    }

    private static TurnedBackTopics topics() {
        Rules now = rules;
        return now == null ? null : now.topics;
    }

    /** With mode=shadow no request is turned back, only counted. */
    public static void shadow(boolean on) {
        shadow = on;
    }

    public static boolean inShadow() {
        return shadow;
    }

    /**
     * Replaces the clients whose requests go on in every state.
     *
     * @param principals names, without their type
     * @param anonymousClientIds client-ids of clients that do not authenticate and so are ANONYMOUS
     * @param internalClientIds a pattern of client-ids that are exempt where brokers do not authenticate to each other:
     *     those of Kafka's own clients inside a broker and of quotahost's (exemptions.py); "" if brokers authenticate
     */
    public static void exempt(String[] principals, String[] anonymousClientIds, String internalClientIds) {
        Pattern internal = internalClientIds.isEmpty() ? null : Pattern.compile(internalClientIds);
        exempt = new Exempt(Set.copyOf(List.of(principals)), Set.copyOf(List.of(anonymousClientIds)), internal);
    }

    // ---- the authorizer --------------------------------------------------------------------------------------

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

    /** Whether a client's requests go on while the fence is closed. */
    public static boolean passes(String principal, String clientId) {
        return exempt.contains(principal, clientId);
    }

    /** How many requests a closed fence has turned back since the start of this JVM. */
    public static long rejections() {
        return rejections.sum();
    }

    /** How many requests a closed fence would have turned back without mode=shadow. */
    public static long shadowed() {
        return shadowed.sum();
    }
}
