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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether this broker takes produce requests, and from whom in any case. Static, since Kafka makes the authorizer
 * (QuotaFence) and the quota callback apart from each other, in one JVM.
 */
public final class Fence {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    private static final short PRODUCE = ApiKeys.PRODUCE.id;
    private static final String ANONYMOUS = "ANONYMOUS";
    /** Client-ids of Kafka's own clients inside a broker, of the plugins' and the pipeline's; exemptions.py has the same. */
    private static final Pattern INSIDE = Pattern.compile("broker-\\d+-\\S+|raft-client-\\d+|quotahost-(\\d+|pipeline)");

    public static final LongAdder rejections = new LongAdder();
    public static final LongAdder shadowed = new LongAdder();
    private static final AtomicInteger fences = new AtomicInteger();
    private static volatile Runnable changed = () -> {};
    /** Why requests may be turned back, null while there is no reason: all that an open fence reads. */
    private static volatile Held held;
    private static volatile boolean shadow;
    private static volatile Exempt exempt = new Exempt(Set.of(), Set.of(), false);

    private Fence() {}

    /** All requests of all but the exempt, or those to some topics (null: none). */
    private record Held(boolean all, TurnedBackTopics topics) {
        static Held of(boolean all, TurnedBackTopics topics) {
            return all || topics != null ? new Held(all, topics) : null;
        }
    }

    /** Who is never turned back; replaced as a whole. */
    private record Exempt(Set<String> principals, Set<String> anonymousClientIds, boolean brokersAnonymous) {
        public boolean holds(String principal, String clientId) {
            if (principals.contains(principal)) return true;
            if (clientId == null || !principal.equals(ANONYMOUS)) return false;
            return anonymousClientIds.contains(clientId) || brokersAnonymous && INSIDE.matcher(clientId).matches();
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Whether there may be a reason to turn a request back: all that a request costs while there is none. */
    public static boolean holds() {
        return held != null;
    }

    /** Whether all but the exempt are turned back. */
    public static boolean closed() {
        Held now = held;
        return now != null && now.all;
    }

    /**
     * Why a request is turned back, null to let it through. Only topics that may be written to count: a transactional
     * produce asks for its id first, and who lacks the right must hear that, not "try again".
     */
    public static RuntimeException refusal(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        Held now = held;
        if (now == null || context.requestType() != PRODUCE || !writes(actions, results)) return null;
        if (exempt.holds(context.principal().getName(), context.clientId())) return null;
        if (!now.all) return now.topics.error(actions, results, shadow);
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

    // ---- the table -------------------------------------------------------------------------------------------

    /** From now on produce requests are turned back, but for those of the exempt. */
    public static synchronized void close() {
        QuietLog.hush(); // each time: a reload of the log's configuration forgets it
        if (closed()) return;
        held = Held.of(true, topics());
        LOG.warn("The fence is closed: produce requests are {}", shadow ? "only counted (mode=shadow)"
                : "answered with NOT_ENOUGH_REPLICAS, and nothing of them is appended");
    }

    /** From now on all produce requests go on. */
    public static synchronized void open() {
        if (!closed()) return;
        held = Held.of(false, topics());
        LOG.info("The fence is open: produce requests go on");
    }

    /** From now on requests to these topics are turned back, but for those of the exempt; null for none. */
    public static synchronized void topics(TurnedBackTopics over) {
        if (over != null) QuietLog.hush();
        held = Held.of(closed(), over);
    }

    private static TurnedBackTopics topics() {
        Held now = held;
        return now == null ? null : now.topics;
    }

    /** In shadow nothing is turned back, only counted. */
    public static void shadow(boolean on) {
        shadow = on;
    }

    public static boolean inShadow() {
        return shadow;
    }

    /**
     * Who goes on in every state.
     *
     * @param principals names, without their type
     * @param anonymousClientIds of clients that may be ANONYMOUS
     * @param brokersAnonymous brokers don't authenticate to each other: Kafka's own clients inside them are exempt, too
     */
    public static void exempt(String[] principals, String[] anonymousClientIds, boolean brokersAnonymous) {
        exempt = new Exempt(Set.copyOf(List.of(principals)), Set.copyOf(List.of(anonymousClientIds)), brokersAnonymous);
    }

    /** Whether a client goes on while the fence is closed. */
    public static boolean passes(String principal, String clientId) {
        return exempt.holds(principal, clientId);
    }

    // ---- the authorizer --------------------------------------------------------------------------------------

    /** Whether a broker in this JVM asks the fence. */
    public static boolean installed() {
        return fences.get() > 0;
    }

    public static void install() {
        fences.incrementAndGet();
        changed.run();
    }

    public static void uninstall() {
        fences.decrementAndGet();
    }

    /** What to do when a fence is installed after the state was decided. */
    public static void onInstall(Runnable action) {
        changed = action;
    }
}
