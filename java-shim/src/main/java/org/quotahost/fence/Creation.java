package org.quotahost.fence;

import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.internals.Requests;
import org.quotahost.util.Json;
import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether topics and partitions may be created on this controller: in a PAUSE only by those who pass a closed fence, if a
 * volume is known to be at its hard limit.
 *
 * <p>A new replica may land on the very volume that is full, and takes index files there before its first record. Kafka
 * asks the controller's authorizer about each creation, also one that a broker forwards (with the client's principal
 * and client-id) or that follows from auto.create.topics.enable.
 *
 * <p>Who may not create anyway gets that answer. Requests with validateOnly and those for Kafka's internal topics alone
 * pass: the former create nothing, and without the latter no consumer could commit. So do those for topics that the
 * fence never protects, such as that of tiered storage: offloading may be the only way out of a full disk.
 */
public final class Creation {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    /** Kafka's clients give this to their caller at once and don't try again: a PAUSE may last for hours. */
    private static final RuntimeException REFUSED = Errors.POLICY_VIOLATION.exception(
            "quotahost creates no topics and partitions in a PAUSE, since a disk of this cluster is full; delete topics or"
                    + " shorten their retention, or try again later");

    /** How many requests were refused since the start of this JVM, and would have been but for the factor in shadow. */
    public static final LongAdder refusals = new LongAdder(), shadowed = new LongAdder();

    private static volatile boolean paused, full, allowed;
    /** Whose request was refused last, for the log; null once it was logged. */
    private static volatile AuthorizableRequestContext last;
    private static long logged;
    static LineLimit lines = new LineLimit(1);

    private Creation() {}

    /** Whether any creation is refused at this moment. */
    public static boolean refused() {
        return paused && full && !allowed;
    }

    /**
     * On a request thread: the error with which a request that creates is refused, or null to let it through.
     *
     * @param results what the inner authorizer answered to the actions, in their order
     */
    public static RuntimeException error(AuthorizableRequestContext context, List<Action> actions,
            List<AuthorizationResult> results) {
        if (!refused() || !creates(context.requestType(), actions, results)) return null;
        if (Exemptions.exempt(context.principal(), context.clientId())) return null;
        if (Exemptions.isSuperUser(context.principal()) || isHarmless(Requests.toCreate(context))) return null;
        if (Fence.inShadow()) {
            shadowed.increment();
            return null;
        }
        refusals.increment();
        last = context;
        return REFUSED;
    }

    /** Whether the client has just been allowed to create topics, by the cluster's or the topic's right, or partitions. */
    private static boolean creates(int request, List<Action> actions, List<AuthorizationResult> results) {
        AclOperation right = request == ApiKeys.CREATE_TOPICS.id ? AclOperation.CREATE
                : request == ApiKeys.CREATE_PARTITIONS.id ? AclOperation.ALTER : null;
        if (right == null) return false;
        for (int i = 0; i < results.size(); i++) {
            if (actions.get(i).operation() == right && results.get(i) == AuthorizationResult.ALLOWED) return true;
        }
        return false;
    }

    private static boolean isHarmless(Requests.ToCreate request) {
        return request != null && (request.validateOnly()
                || request.topics().stream().allMatch(topic -> Topic.isInternal(topic) || Exemptions.spares(topic)));
    }

    /** A PAUSE begins or ends. */
    public static void pause(boolean on) {
        paused = on;
    }

    /** Whether the host knows of a volume at its hard limit. An unknown state is no full disk: then creations pass. */
    public static void full(boolean on) {
        full = on;
    }

    /** With pause.creation=allow nothing is refused. */
    public static void allow(boolean on) {
        allowed = on;
    }

    /** Logs what was refused since the last line, at most once a minute; the watch calls it often. */
    public static synchronized void log() {
        AuthorizableRequestContext one = last;
        if (one == null || lines.pass() == LineLimit.NO) return;
        last = null;
        long all = refusals.sum();
        LOG.warn("PAUSE: {} requests to create topics or partitions were refused, the last of user {}, client-id {}"
                + " (pause.creation=allow lets them pass)", all - logged, Json.text(one.principal().getName()),
                Json.text(one.clientId()));
        logged = all;
    }
}
