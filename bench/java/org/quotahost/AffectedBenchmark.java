package org.quotahost;

import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;
import org.quotahost.table.QuotaTable;

/**
 * Measures the cost of a produce request of 1,000 clients, with two threads, while a factor is for writers to affected topics.
 *
 * <p>Parameter clients: "none" is without affected topics; "unaffected" clients write to another topic than the affected one;
 * "marked" ones write to that topic. The fence is asked first, as on a broker, and beside it the inner authorizer alone.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
@Threads(2)
public class AffectedBenchmark {
    private static final String AFFECTED = "orders";

    /** A fence that shows its inner authorizer. */
    private static final class Inside extends QuotaFence {
        Authorizer alone() {
            return inner;
        }
    }

    @State(Scope.Benchmark)
    public static class Broker {
        @Param({"none", "unaffected", "marked"})
        public String clients;

        PythonQuotaCallback callback;
        QuotaFence fence;
        Authorizer inner;
        List<Action> actions;
        final KafkaPrincipal[] principals = Filled.principals(Filled.CLIENTS);
        final RequestContext[] requests = new RequestContext[Filled.CLIENTS];

        @Setup
        public void fill() throws Exception {
            Inside inside = new Inside();
            fence = inside;
            fence.configure(Map.of("process.roles", "broker", "node.id", "1", "client.quota.callback.fence.authorizer", "none"));
            inner = inside.alone();
            QuotaTable table = Filled.table(principals, 0);
            callback = Filled.callback(table);
            actions = List.of(write(clients.equals("marked") ? AFFECTED : "other"));
            var slowed = new QuotaTable.SlowedTopics("", 0.5, null, new String[] {AFFECTED}, new String[] {"here"}, Set.of());
            if (!clients.equals("none")) table.factor(0.5, "full", slowed);
            for (int i = 0; i < Filled.CLIENTS; i++) {
                requests[i] = produce(principals[i]);
                fence.authorize(requests[i], actions);
            }
            String user = callback.quotaMetricTags(ClientQuotaType.PRODUCE, principals[0], Filled.CLIENT_ID).get("user");
            if (user.startsWith("<slowed") != clients.equals("marked")) throw new IllegalStateException(user);
        }

        private static Action write(String topic) {
            return new Action(AclOperation.WRITE, new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL), 1, true, true);
        }

        private static RequestContext produce(KafkaPrincipal principal) {
            var header = new RequestHeader(ApiKeys.PRODUCE, ApiKeys.PRODUCE.latestVersion(), Filled.CLIENT_ID, 1);
            return new RequestContext(header, "1", InetAddress.getLoopbackAddress(), principal, new ListenerName("PLAINTEXT"),
                    SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        }
    }

    @Benchmark
    public Object authorizerAlone(Broker broker, Filled.Turn turn) {
        return broker.inner.authorize(broker.requests[turn.next()], broker.actions);
    }

    @Benchmark
    public Object fence(Broker broker, Filled.Turn turn) {
        return broker.fence.authorize(broker.requests[turn.next()], broker.actions);
    }

    @Benchmark
    public Object tagsAndReset(Broker broker, Filled.Turn turn) {
        Object tags = broker.callback.quotaMetricTags(ClientQuotaType.PRODUCE, broker.principals[turn.next()], Filled.CLIENT_ID);
        return broker.callback.quotaResetRequired(ClientQuotaType.PRODUCE) ? null : tags;
    }
}
