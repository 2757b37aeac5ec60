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
 * Which requests are turned back on this node: produce requests (NOT_ENOUGH_REPLICAS; of topic quotas TopicQuotas says which,
 * and the error) and, by a controller in a PAUSE, new topics but internal and spared ones; Exemptions says who passes. All of
 * it is static, since Kafka makes the authorizer (QuotaFence), which asks about each request, apart from the quota callback,
 * in one JVM.
 *
 * <p>A controller also creates no topics and partitions in a PAUSE, if a volume is known to be at its hard limit
 * (docs/adr/0021-creation-in-a-pause.md). Kafka asks its authorizer about each creation, also one that a broker forwards
 * (with the client's principal and client-id) or that follows from auto.create.topics.enable. Requests with validateOnly and
 * those for Kafka's internal topics alone pass: without the latter no consumer could commit. So do those for topics that the
 * fence never protects, such as that of tiered storage: offloading may be the only way out of a full disk. And so do those for
 * topics that exist: Kafka creates none and says so, as a Connect worker expects, which asks for its topics at each start.
 */
public final class Fence {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    /** Types of requests, as Kafka's protocol guide numbers them. */
    private static final int PRODUCE = 0, FETCH = 1, CREATE_TOPICS = 19, CREATE_PARTITIONS = 37;
    /** A volume at its hard limit may close the fence four times a second. */
    static final int LINES_PER_MINUTE = 20;
    /** Every client sends the request again; THROTTLING_QUOTA_EXCEEDED would be fatal to librdkafka. */
    public static final RuntimeException CLOSED = refusal("quotahost has paused writing, since disks of this cluster are full"
            + " or their state is unknown; try again");
    /** Kafka's clients give this to their caller at once and don't try again: a PAUSE may last for hours. */
    private static final RuntimeException NOT_CREATED = new PolicyViolationException(
            "quotahost creates no topics and partitions in a PAUSE, since a disk of this cluster is full; delete topics or"
                    + " shorten their retention, or try again later");

    /** What the log says of a state. */
    private static final String OPEN = "The fence is open: produce requests go on",
            COUNTS = "The fence is closed: produce requests are only counted, since the factor is in shadow",
            REFUSED = " are answered with NOT_ENOUGH_REPLICAS, and nothing of them is appended",
            HOLDS = "The fence is closed: produce requests to held topics" + REFUSED,
            HOLDS_ALL = "The fence is closed: produce requests" + REFUSED;

    /** Since this JVM's start: produce requests turned back, or not since in shadow; bytes of the former's record batches. */
    public static final LongAdder rejections = new LongAdder(), shadowed = new LongAdder(), rejectedBytes = new LongAdder();
    /** Requests that create topics or partitions. */
    public static final LongAdder creationsRefused = new LongAdder(), creationsShadowed = new LongAdder();

    private static volatile Rules rules = new Rules(false, false, false, null);
    /** The topics whose produce requests are turned back beside those of the rules; null for none. */
    private static volatile Topics topics;
    /** Hears who writes and reads, and from where: only an authorizer sees addresses. */
    private static volatile Consumer<AuthorizableRequestContext> addresses;
    private static volatile double allowance;
    private static volatile boolean installed, diskFull, creationAllowed;
    /** The names of the cluster's topics, as Kafka has told them last. */
    private static volatile Set<String> existing = Set.of();
    /** Whose creation was refused last, for the log; null once it was logged. */
    private static volatile AuthorizableRequestContext refusedLast;
    private static long loggedRefusals;
    private static String loggedState = OPEN;
    static LineLimit lines = new LineLimit(LINES_PER_MINUTE), refusalLines = new LineLimit(1);

    private Fence() {}

    // What request threads ask of others, without a lock.

    /** The topics on volumes above their soft limits, or of budgets that are nearly used up. */
    public interface Affected {
        /**
         * Marks a client that is not exempt, asks to write to the topic, and may, if the topic is affected.
         *
         * @return the error with which requests to the topic are turned back while the fence is closed, or null
         */
        RuntimeException mark(KafkaPrincipal principal, String clientId, String topic);
    }

    /** The topics whose produce requests are turned back now, whoever sends them. */
    public interface Topics {
        /** The error with which a request is turned back, which TurnedBack is told, or null to let it through. */
        RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
                List<AuthorizationResult> results);
    }

    /**
     * @param paused the state is PAUSE; a controller knows it, too, where no fence is installed
     * @param closed the produce requests of all clients but the exempt are turned back, or only those to held topics
     * @param shadow nothing is turned back for that or refused, it is only counted
     * @param affected the topics whose writers are marked, and which of them are held; null if a closed fence holds all
     */
    private record Rules(boolean paused, boolean closed, boolean shadow, Affected affected) {}

    // ---- request threads -------------------------------------------------------------------------------------

    /**
     * The error with which a produce request is turned back, or null to let it through.
     *
     * <p>Only a request that may write to some topic is turned back, or marks its client as one that writes there. A
     * transactional produce first asks whether it may use its transactional id; a client that may not must get that
     * answer, and not the advice to try again. Results are what the inner authorizer answered to the actions.
     */
    public static RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        Consumer<AuthorizableRequestContext> keeper = addresses;
        int request = context.requestType();
        if (keeper != null && (request == PRODUCE || request == FETCH)) keeper.accept(context);
        Rules now = rules;
        Topics over = topics;
        if (!now.closed && now.affected == null && over == null) return null;
        Mute.unmark();
        if (request != PRODUCE || Exemptions.exempt(context.principal(), context.clientId())) return null;
        boolean writes = false;
        RuntimeException held = null;
        // One topic that the fence protects holds the whole request up.
        for (int i = 0; i < results.size(); i++) {
            String topic = writable(actions.get(i), results.get(i));
            if (topic == null || Exemptions.spares(topic)) continue;
            writes = true;
            RuntimeException error = now.affected == null ? CLOSED
                    : now.affected.mark(context.principal(), context.clientId(), topic);
            if (held == null) held = error;
        }
        if (!writes) return null;
        // Super users keep their quotas, those of topics, too.
        if (now.closed && held != null && !Exemptions.isSuperUser(context.principal())) {
            if (!now.shadow) {
                rejections.increment();
                TurnedBack.note(context, actions, results, "", allowance, rejectedBytes);
                return held;
            }
            shadowed.increment();
        }
        return over == null ? null : over.error(context, actions, results);
    }

    /** The topic to which the client may write by this action of a produce request, or null if it is none. */
    public static String writable(Action action, AuthorizationResult result) {
        ResourcePattern resource = action.resourcePattern();
        boolean topic = resource.resourceType() == ResourceType.TOPIC;
        return topic && result == AuthorizationResult.ALLOWED ? resource.name() : null;
    }

    /** The same on a controller, of a request that creates topics or partitions. */
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

    /** Whether the client has just been allowed to create topics, by the cluster's or the topic's right, or partitions. */
    private static boolean creates(int request, List<Action> actions, List<AuthorizationResult> results) {
        AclOperation right = request == CREATE_TOPICS ? AclOperation.CREATE
                : request == CREATE_PARTITIONS ? AclOperation.ALTER : null; // which no action has
        for (int i = 0; i < results.size(); i++) {
            if (actions.get(i).operation() == right && results.get(i) == AuthorizationResult.ALLOWED) return true;
        }
        return false;
    }

    /** Of spared topics that of tiered storage is one: offloading may be the only way out of a full disk. */
    private static boolean isHarmless(AuthorizableRequestContext context) {
        Set<String> there = context.requestType() == CREATE_TOPICS ? existing : Set.of();
        return Requests.createsOnly(context, topic -> Exemptions.spares(topic) || there.contains(topic));
    }

    // ---- the table, the topic quotas and the host ------------------------------------------------------------

    public static RuntimeException refusal(String why) {
        return new NotEnoughReplicasException(why);
    }

    /** A PAUSE begins or ends, or requests to held topics are turned back from now on or no longer (Rules). */
    public static void state(boolean paused, boolean turnsBack, boolean shadow, Affected affected) {
        rules = new Rules(paused, turnsBack && installed(), shadow, affected);
    }

    public static void addresses(Consumer<AuthorizableRequestContext> to) {
        addresses = to;
    }

    public static void turnBack(Topics now) {
        topics = now;
    }

    /** How many bytes/s a principal may send on while the fence is closed, before its connections are muted. */
    public static void allowance(double bytesPerSecond) {
        allowance = bytesPerSecond;
    }

    /** Whether the host knows of a volume at its hard limit. An unknown state is no full disk: then creations pass. */
    public static void diskFull(boolean known) {
        diskFull = known;
    }

    /** Up to Kafka 4.3.1 it isn't heard of while a broker with replicas is down (KAFKA-20746): then what was heard before holds. */
    public static void existing(Set<String> topics) {
        existing = new HashSet<>(topics); // Set.copyOf() is slow where names were chosen to collide
    }

    /** With pause.creation=allow no creation is refused. */
    public static void allowCreation(boolean on) {
        creationAllowed = on;
    }

    /** An authorizer of a broker, as a controller gets no produce request. */
    public static void install() {
        installed = true;
    }

    /**
     * The host ends, and not the authorizer: Kafka closes that long before the callback, and meanwhile a PAUSE would seem to
     * be over.
     */
    public static void uninstall() {
        installed = false;
        rules = new Rules(false, false, false, null); // another broker of this JVM may have the fence without the callback
    }

    /** Logs the state if it is another one than in the last line; one that was left out as soon as a line may be written. */
    public static void logState() {
        Rules now = rules;
        String state = !now.closed ? OPEN : now.shadow ? COUNTS : now.affected != null ? HOLDS : HOLDS_ALL;
        if (state.equals(loggedState) || lines.pass() == LineLimit.NO) return;
        loggedState = state;
        if (now.closed) LOG.warn(state);
        else LOG.info(state);
    }

    /** Logs which creations were refused since the last line, at most once a minute. */
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

    // ---- readers ---------------------------------------------------------------------------------------------

    /** Whether a broker's authorizer in this JVM asks the fence; without one, closing it has no effect. */
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
        return rules.paused && diskFull && !creationAllowed;
    }
}
