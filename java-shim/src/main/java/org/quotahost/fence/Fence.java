package org.quotahost.fence;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.internals.Mute;
import org.quotahost.internals.Requests;
import org.quotahost.util.Json;
import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The fence, which decides on request threads which requests this node turns back: a broker turns back produce requests, a
 * controller in a PAUSE the creation of topics and partitions; exempt clients pass, and super users pass all but topic quotas
 * (Exemptions). The closed fence answers NOT_ENOUGH_REPLICAS; TopicQuotas has its own topics and error. All state is static:
 * Kafka makes the authorizer (QuotaFence), which calls the fence for each request, apart from the quota callback in one JVM.
 *
 * <p>A controller refuses creations in a PAUSE if a volume is known to be at its hard limit
 * (docs/adr/0021-creation-in-a-pause.md). Kafka asks the controller's authorizer about each creation, also if a broker forwards
 * it (with the client's principal and client-id) or auto.create.topics.enable causes it. A request passes with validateOnly, or
 * if each of its topics is internal, since otherwise no consumer could commit; or is one that the fence never protects, such as
 * that of tiered storage, since offloading may be the only way out of a full disk; or, in a request to create topics, exists,
 * since Kafka creates none and says so, as a Connect worker expects at each start.
 */
public final class Fence {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    /** Types of requests, with the numbers of Kafka's protocol guide. */
    private static final int PRODUCE = 0, FETCH = 1, CREATE_TOPICS = 19, CREATE_PARTITIONS = 37, SHARE_FETCH = 78;
    /** A limit is needed, since a volume at its hard limit may close the fence four times a second. */
    static final int LINES_PER_MINUTE = 20;
    /** Every client retries on this error; THROTTLING_QUOTA_EXCEEDED would be fatal to librdkafka. */
    public static final RuntimeException CLOSED = refusal("quotahost has paused writing, since disks of this cluster are full"
            + " or their state is unknown; try again");
    /** With this error Kafka's clients do not retry, but report it to their caller at once: a PAUSE may last for hours. */
    private static final RuntimeException NOT_CREATED = new PolicyViolationException(
            "quotahost creates no topics and partitions in a PAUSE, since a disk of this cluster is full; delete topics or"
                    + " shorten their retention, or try again later");

    /** The log's text for each state. */
    private static final String OPEN = "The fence is open: produce requests are accepted",
            COUNTS = "The fence is closed: produce requests are only counted, since the factor is in shadow",
            REFUSED = " get NOT_ENOUGH_REPLICAS and are not appended",
            HOLDS = "The fence is closed: produce requests to held topics" + REFUSED,
            HOLDS_ALL = "The fence is closed: produce requests" + REFUSED;

    /** Counts since this JVM's start: produce requests turned back, or only counted in shadow; bytes of batches turned back. */
    public static final LongAdder rejections = new LongAdder(), shadowed = new LongAdder(), rejectedBytes = new LongAdder();
    /** Requests to create topics or partitions that were refused, or only counted in shadow. */
    public static final LongAdder creationsRefused = new LongAdder(), creationsShadowed = new LongAdder();

    private static volatile Rules rules = new Rules(false, false, false, null, 0);
    /** The topic quotas' check, for topics that are turned back beside those of the rules; null if there is none. */
    private static volatile Topics topics;
    /** Receives each client that writes or reads, with its address, which only an authorizer sees. */
    private static volatile Consumer<AuthorizableRequestContext> addresses;
    private static volatile boolean installed, atController, diskFull, creationAllowed;
    /** The names of the cluster's topics in Kafka's latest metadata. */
    private static volatile Set<String> existing = Set.of();
    /** The client whose creation was refused last, for the log; null after it was logged. */
    private static volatile AuthorizableRequestContext refusedLast;
    private static long loggedRefusals;
    private static String loggedState = OPEN;
    static LineLimit lines = new LineLimit(LINES_PER_MINUTE), refusalLines = new LineLimit(1);

    private Fence() {}

    // ---- what request threads call, without a lock --------------------------------------------------------------

    /** The topics on volumes above their soft limits, and those of budgets whose factor is below 1. */
    public interface Affected {
        /**
         * Marks a client (not exempt, and allowed to write) as a writer to the topic if the topic is affected.
         *
         * @return the error with which the closed fence turns back requests to the topic, or null
         */
        RuntimeException mark(KafkaPrincipal principal, String clientId, String topic);
    }

    /** The topics whose produce requests are turned back now, whoever sends them. */
    public interface Topics {
        /** Returns the error with which the request is turned back (and tells TurnedBack), or null to let the request pass. */
        RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
                List<AuthorizationResult> results);
    }

    /**
     * @param paused the state is PAUSE; a controller needs this also if no fence is installed
     * @param closed produce requests of all but exempt clients and super users are turned back, or only those to held topics
     * @param shadow the closed fence and a PAUSE only count requests and refuse none
     * @param affected the topics whose writers are marked, and which of these are held; null if a closed fence holds all topics
     * @param allowance how many bytes/s a principal may still send while the fence is closed before its connections are muted
     */
    private record Rules(boolean paused, boolean closed, boolean shadow, Affected affected, double allowance) {}

    // ---- request threads -------------------------------------------------------------------------------------

    /**
     * Returns the error with which a produce request is turned back, or null to let it pass.
     *
     * <p>Only a request that may write to some topic is turned back, or marks its client as one that writes there. A
     * transactional produce first asks whether it may use its transactional id. A client that may not must get that answer, and
     * not the advice to retry. The results are the inner authorizer's answers to the actions.
     */
    public static RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        Consumer<AuthorizableRequestContext> keeper = addresses;
        int request = context.requestType();
        boolean moves = request == PRODUCE || request == FETCH || request == SHARE_FETCH;
        if (keeper != null && moves) keeper.accept(context);
        Rules now = rules;
        Topics over = topics;
        if (!now.closed && now.affected == null && over == null) return null;
        Mute.unmark();
        if (request != PRODUCE || Exemptions.exempt(context.principal(), context.clientId())) return null;
        boolean writes = false;
        RuntimeException held = null;
        // One topic that the fence protects holds up the whole request.
        for (int i = 0; i < results.size(); i++) {
            String topic = writable(actions.get(i), results.get(i));
            if (topic == null || Exemptions.spares(topic)) continue;
            writes = true;
            RuntimeException error = now.affected == null ? CLOSED
                    : now.affected.mark(context.principal(), context.clientId(), topic);
            if (held == null) held = error;
        }
        if (!writes) return null;
        // Super users still have their quotas, including the topics' quotas.
        if (now.closed && held != null && !Exemptions.isSuperUser(context.principal())) {
            if (!now.shadow) {
                rejections.increment();
                TurnedBack.note(context, actions, results, "", now.allowance, rejectedBytes);
                return held;
            }
            shadowed.increment();
        }
        return over == null ? null : over.error(context, actions, results);
    }

    /** Returns the topic to which this action of a produce request may write, or null if there is none. */
    public static String writable(Action action, AuthorizationResult result) {
        ResourcePattern resource = action.resourcePattern();
        boolean topic = resource.resourceType() == ResourceType.TOPIC;
        return topic && result == AuthorizationResult.ALLOWED ? resource.name() : null;
    }

    /** Returns the error with which a controller refuses to create topics or partitions, or null to let the request pass. */
    public static RuntimeException creationError(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        if (!refusesCreations() || !creates(context.requestType(), actions, results)) return null;
        if (Exemptions.exempt(context.principal(), context.clientId())) return null;
        if (Exemptions.isSuperUser(context.principal()) || isHarmless(context)) return null;
        if (rules.shadow) {
            creationsShadowed.increment();
            return null;
        }
        creationsRefused.increment();
        refusedLast = context;
        return NOT_CREATED;
    }

    /** Returns whether the inner authorizer just allowed the client to create topics (a cluster's or topic's right) or partitions. */
    private static boolean creates(int request, List<Action> actions, List<AuthorizationResult> results) {
        AclOperation right = request == CREATE_TOPICS ? AclOperation.CREATE
                : request == CREATE_PARTITIONS ? AclOperation.ALTER : null; // no action has a null operation
        for (int i = 0; i < results.size(); i++) {
            if (actions.get(i).operation() == right && results.get(i) == AuthorizationResult.ALLOWED) return true;
        }
        return false;
    }

    /** Returns whether a creation is harmless. Spared topics include tiered storage's, since offloading may free the disk. */
    private static boolean isHarmless(AuthorizableRequestContext context) {
        Set<String> there = context.requestType() == CREATE_TOPICS ? existing : Set.of();
        return Requests.createsOnly(context, topic -> Exemptions.spares(topic) || there.contains(topic));
    }

    // ---- the table, the topic quotas and the host ------------------------------------------------------------

    public static RuntimeException refusal(String why) {
        return new NotEnoughReplicasException(why);
    }

    /** Sets the state (Rules). If no broker's authorizer is installed, the fence stays open. */
    public static void state(boolean paused, boolean turnsBack, boolean shadow, Affected affected, double allowance) {
        rules = new Rules(paused, turnsBack && installed(), shadow, affected, allowance);
    }

    public static void addresses(Consumer<AuthorizableRequestContext> to) {
        addresses = to;
    }

    public static void turnBack(Topics now) {
        topics = now;
    }

    /** Sets whether the host knows of a volume at its hard limit. If the state is only unknown, creations pass. */
    public static void diskFull(boolean known) {
        diskFull = known;
    }

    /** Sets the cluster's topics. The old ones hold while a broker with replicas is down, up to Kafka 4.3.1 (KAFKA-20746). */
    public static void existing(Set<String> topics) {
        existing = new HashSet<>(topics); // Set.copyOf() is slow if somebody has chosen names that collide
    }

    /** Sets whether creations always pass (pause.creation=allow). */
    public static void allowCreation(boolean on) {
        creationAllowed = on;
    }

    /** Notes the roles of the node that has the authorizer: brokers get produce requests, and controllers create topics. */
    public static void install(boolean broker, boolean controller) {
        installed |= broker;
        atController |= controller;
    }

    /**
     * Opens the fence when the host ends, not when the authorizer does: Kafka closes the authorizer long before the callback,
     * and in between a PAUSE would seem to be over.
     */
    public static void uninstall() {
        installed = atController = false;
        rules = new Rules(false, false, false, null, 0); // another broker of this JVM may have the fence without the callback
        addresses = null;
    }

    /** Logs the state if it differs from the last logged one. If the line limit suppresses a line, a later call logs it. */
    public static void logState() {
        Rules now = rules;
        String state = !now.closed ? OPEN : now.shadow ? COUNTS : now.affected != null ? HOLDS : HOLDS_ALL;
        if (state.equals(loggedState) || lines.pass() == LineLimit.NO) return;
        loggedState = state;
        if (now.closed) LOG.warn(state);
        else LOG.info(state);
    }

    /** Logs the creations that were refused since the last line, at most once a minute. */
    public static void logRefusals() {
        AuthorizableRequestContext last = refusedLast;
        if (last == null || refusalLines.pass() == LineLimit.NO) return;
        refusedLast = null;
        long all = creationsRefused.sum();
        LOG.warn("PAUSE: {} requests to create topics or partitions were refused, the last of user {}, client-id {}"
                + " (pause.creation=allow lets them pass)", all - loggedRefusals, Json.text(last.principal().getName()),
                Json.text(last.clientId()));
        loggedRefusals = all;
    }

    // ---- getters ------------------------------------------------------------------------------------------------

    /** Whether a broker's authorizer in this JVM calls the fence. If none does, closing the fence has no effect. */
    public static boolean installed() {
        return installed;
    }

    public static boolean closed() {
        return rules.closed;
    }

    public static boolean inShadow() {
        return rules.shadow;
    }

    public static boolean refusesCreations() {
        return atController && rules.paused && diskFull && !creationAllowed;
    }
}
