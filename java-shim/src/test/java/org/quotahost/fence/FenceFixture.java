package org.quotahost.fence;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.quotahost.QuotaFence;
import org.quotahost.internals.InternalsFixture;
import org.quotahost.internals.Mute;
import org.quotahost.util.LineLimit;

/** Fences of a broker, the requests about which Kafka asks an authorizer, and a reset of the static state after each test. */
public final class FenceFixture {
    public static final ListenerName LISTENER = ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT);

    /** The error with which a closed fence turns a produce request back. */
    public static final Class<? extends RuntimeException> PAUSED = NotEnoughReplicasException.class;

    private static final int TIMES = 100_000;
    private static final List<QuotaFence> MADE = new ArrayList<>();

    private FenceFixture() {}

    /** Returns such an error, as KafkaApis logs it. */
    public static RuntimeException error() {
        return Errors.NOT_ENOUGH_REPLICAS.exception("quotahost: paused");
    }

    /** Returns a broker's fence in front of that authorizer ("" for the default), configured with these further properties. */
    public static QuotaFence fence(String authorizer, Map<String, ?> more) {
        QuotaFence fence = new QuotaFence();
        Map<String, Object> properties = new HashMap<>(Map.of("process.roles", "broker,controller", "node.id", "1"));
        if (!authorizer.isEmpty()) properties.put("client.quota.callback.fence.authorizer", authorizer);
        properties.putAll(more);
        fence.configure(properties);
        MADE.add(fence);
        return fence;
    }

    /** Returns a request of a client, by its API, principal and client-id. */
    public static AuthorizableRequestContext from(ApiKeys key, String user, String clientId) {
        return from(key, new KafkaPrincipal("User", user), clientId);
    }

    /** Returns a request of a principal of any type. */
    public static AuthorizableRequestContext from(ApiKeys key, KafkaPrincipal principal, String clientId) {
        RequestHeader header = new RequestHeader(key, key.latestVersion(), clientId, 1);
        return new RequestContext(header, "1", InetAddress.getLoopbackAddress(), principal, LISTENER,
                SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    public static Action to(AclOperation operation, ResourceType type, String name) {
        return new Action(operation, new ResourcePattern(type, name, PatternType.LITERAL), 1, true, true);
    }

    /** Returns the actions about which Kafka asks for a produce request to these topics. */
    public static List<Action> write(String... topics) {
        List<Action> actions = new ArrayList<>();
        for (String topic : topics) actions.add(to(AclOperation.WRITE, ResourceType.TOPIC, topic));
        return actions;
    }

    /** Returns how many bytes a call allocates after its compilation. */
    public static long bytesPerCall(Runnable call) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int i = 0; i < TIMES; i++) call.run();
        long id = Thread.currentThread().getId();
        long before = threads.getThreadAllocatedBytes(id);
        for (int i = 0; i < TIMES; i++) call.run();
        return (threads.getThreadAllocatedBytes(id) - before) / TIMES;
    }

    /** Resets the state after each test of a class with this extension. */
    public static final class Reset implements AfterEachCallback {
        @Override
        public void afterEach(ExtensionContext test) {
            reset();
        }
    }

    /** Restores the state that every test of the fence must leave: no fence installed, open, no client exempt. */
    public static void reset() {
        TurnedBack.clients.clear();
        for (QuotaFence fence : MADE) Utils.closeQuietly(fence, "fence");
        MADE.clear();
        Fence.uninstall();
        Fence.lines = new LineLimit(Fence.LINES_PER_MINUTE);
        Fence.logState();
        Fence.lines = new LineLimit(Fence.LINES_PER_MINUTE);
        Fence.diskFull(false);
        Fence.allowCreation(false);
        Fence.existing(Set.of());
        Fence.logRefusals();
        Fence.refusalLines = new LineLimit(1);
        Fence.turnBack(null);
        Exemptions.set(Map.of(), new String[0], "");
        Exemptions.spare(new String[0]);
        Exemptions.superUsers(Map.of());
        Mute.unmark();
        InternalsFixture.handles(null);
    }
}
