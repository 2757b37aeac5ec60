package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.quotahost.Samples;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.table.Dump;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.LogCapture;

/** The calls that Python may make, and their form on the wire; broker tests cover what the calls do. */
class CallsTest {
    private final PythonHost host = new PythonHost(new BrokerConfigs(Map.of(), Map.of("node.id", "7")));
    private final Life life = new Life.InBroker(host,
            new BrokerConfigs(Map.of("client.quota.callback.static.produce", "1M"), Map.of()), new CompletableFuture<>());
    private final Calls calls = life.calls;

    /** Returns the answer in JSON: [problem, value]. */
    private String call(Object... call) {
        return text(calls.call(PythonCalls.bytes(call)));
    }

    private static String text(byte[] answer) {
        return new String(answer, StandardCharsets.US_ASCII);
    }

    @Test
    void everyCallThatPythonDeclaresIsAnsweredAndNoOther() {
        assertEquals(Set.of(Calls.DECLARATION.getProperty("calls").split(" ")), calls.handlers.keySet());
    }

    @Test
    void anAnswerIsAValueOrAProblemAndNeverAnException() {
        assertEquals("[null,{\"node.id\":\"7\"}]", call("broker"));
        assertEquals("[null,true]", call("restarted"));
        host.lives.first = life;
        assertEquals("[null,false]", call("restarted"));
        assertEquals("[null,{\"client.quota.callback.static.produce\":\"1M\"}]", call("properties"));
        for (Object[] wrong : new Object[][] {{"gauge"}, {"gauge", 1, 2, 3, 4}, {"nonsense"}, {}, {"ready", List.of(1)}}) {
            assertTrue(call(wrong).matches("\\[\".*\",null]"), call(wrong));
        }
        assertTrue(text(calls.call(new byte[] {'?'})).matches("\\[\".*\",null]"));
    }

    /** If two threads of Python's met one exception of Java's together, the broker would end. */
    @Test
    void noExceptionGetsOutWhereTheHeapIsFullEither() {
        var properties = new HashMap<String, String>() {
            @Override
            public Set<Entry<String, String>> entrySet() {
                throw new FullHeap();
            }
        };
        Life full = new Life.InBroker(host, new BrokerConfigs(properties, Map.of()), new CompletableFuture<>());
        try {
            assertEquals("[\"the broker's heap is full\",null]", text(full.calls.call(PythonCalls.bytes("properties"))));
        } catch (FullHeap out) {
            fail("it got out"); // JUnit itself would end without a message
        }
    }

    @Test
    void aProblemIsItsFirstCauseAndHasNoMessageThatIsNone() {
        assertEquals("TimeoutException", Calls.problem(new ExecutionException(new TimeoutException())));
        assertEquals("IOException: two lines", Calls.problem(new ExecutionException(new IOException("two\nlines"))));
    }

    @Test
    void aPythonOfAnotherProtocolIsRefusedWithARemedy() {
        assertEquals("[null,null]", call("hello", Calls.VERSION, "1.0"));
        String problem = call("hello", Calls.VERSION + 1, "9.9");
        assertTrue(problem.contains("quotahost 9.9") && problem.contains("one release"), problem);
        assertTrue(life.ready.isCompletedExceptionally());
    }

    @Test
    void whoWantsToWaitForLongIsAnsweredAllTheSame() {
        assertEquals("[null,[[],[],false]]", call("take", 1L << 40));
    }

    @Test
    void theHostIsNotAskedForAClientThatHasBecomeExemptMeanwhile() {
        host.inbox.postClient("alice", "app");
        try {
            assertEquals("[null,null]", call("exempt", List.of("alice", "listed"), List.of(), ""));
            assertEquals("[null,[[],[],false]]", call("take", 0L));
        } finally {
            call("exempt", List.of(), List.of(), "");
        }
    }

    @Test
    void aBudgetHoldsItsTopicsAtAFactorOfNothingAndNotBefore() {
        Fence.install(true, false);
        try {
            for (double factor : new double[] {0.5, 0}) {
                assertEquals("[null,null]", call("set_budgets", List.of(List.of("logs", factor, "budget logs", "it is full", List.of("t")))));
                assertEquals(factor == 0, Fence.closed());
            }
        } finally {
            Fence.uninstall();
        }
    }

    @Test
    void aBatchThatIsNotAnsweredIsTakenOnceMore() {
        host.inbox.postClient("alice", "app\ud800"); // a principal builder may make such a name; a plugin could not write it
        assertEquals("[null,[[[\"alice\",\"app?\"]],[],false]]", call("take", 0L));

        life.close();
        assertEquals("[null,[[],[],true]]", call("take", 60_000L));
        calls.giveBack();

        Batch again = host.inbox.take(0);
        assertEquals(List.of("alice"), again.clients().stream().map(Batch.Lookup::principal).toList());
        assertTrue(again.clients().get(0).posted());
        calls.giveBack();
        assertEquals(List.of(), host.inbox.take(0).clients());
    }

    /** Such a call still waits when its process has ended and another life begins. */
    @Test
    void aCallOfALifeThatIsOverTakesNothingFromTheNextOne() throws Exception {
        Thread left = new Thread(() -> call("take", 500L));
        left.start();
        while (left.getState() != Thread.State.TIMED_WAITING) Thread.onSpinWait();

        calls.giveBack();
        host.inbox.postClient("alice", "app");
        left.join();

        assertEquals(1, host.inbox.take(0).clients().size());
        assertEquals("[null,[[],[],true]]", call("take", 60_000L));
    }

    @Test
    void theNextPythonHearsOfTheFactorAndWhomItIsFor() {
        assertEquals("[null,[1.0,\"\",false,[],[],[],false]]", call("factor"));
        call("set_factor", 0.5, "full", true, List.of("a"), List.of("a disk"), List.of("a"), false);
        assertEquals("[null,[0.5,\"full\",true,[\"a\"],[\"a disk\"],[\"a\"],false]]", call("factor"));
    }

    /** If 50,000 clients have quotas of their own, the suppliers' names would take as much memory as the rates. */
    @Test
    void whatTheAnswersOfManyClientsHaveAlikeIsKeptOnce() {
        List<Object> suppliers = new ArrayList<>();
        for (String client : List.of("a", "b")) {
            host.inbox.postClient("alice", client);
            call("take", 0L);
            List<Object> quota = List.of(0, client.equals("a") ? 1.0 : 2.0, "", "static");
            assertEquals("[null,null]",
                    call("publish", new int[1], List.of(List.of(Collections.nCopies(4, quota), -1, "")), List.of()));
            var quotas = (List<?>) new Dump(host.table).client("alice", client).get("quotas");
            suppliers.add(((Map<?, ?>) quotas.get(0)).get("supplier"));
        }
        assertEquals("static", suppliers.get(0));
        assertSame(suppliers.get(0), suppliers.get(1));
    }

    @Test
    void aLifeThatIsOverKeepsNoClientIds() {
        List<Object> quota = List.of(0, 1.0, "", "static");
        byte[] distinct = PythonCalls.bytes("a", "b");
        assertEquals("[null,null]",
                call("publish", new int[0], List.of(List.of(Collections.nCopies(4, quota), 0, "")), List.of(distinct)));
        assertEquals(1, calls.ids.size());

        calls.giveBack();

        assertEquals(Map.of(), calls.ids);
    }

    private void configure(String factored, List<Object> shadow) {
        List<Object> table = List.of(100, 3_600, 10.0, List.of(factored), new double[4], List.of());
        List<Object> topics = List.of(Double.NaN, List.of(), new double[0], List.of(), "NOT_ENOUGH_REPLICAS");
        assertEquals("[null,null]", call("configure", table, shadow, List.of(11, 1_000, 30_000), false, List.of(60_000, "OPEN"), topics));
    }

    /** If the rules changed one by one, one of these two changes would turn requests back by a rule that was never set. */
    @Test
    void aChangeOfSeveralRulesTakesEffectAsOne() {
        FenceFixture.fence("none", Map.of());
        configure("FETCH", List.of());
        host.table.factor(0, "full", null);
        String log = LogCapture.during(() -> {
            configure("PRODUCE", List.of("factor"));
            configure("FETCH", List.of());
        });
        FenceFixture.reset();

        assertEquals(0, LogCapture.lines(log, "get NOT_ENOUGH_REPLICAS"), log);
    }

    /** Clients that create topics choose their names, and at each beat the watch checks under the table's lock if all are held. */
    @Test
    @Timeout(10)
    void topicsWhoseNamesWereChosenToCollideHoldNothingUp() {
        List<String> topics = Samples.ofOneHash(14);
        FenceFixture.fence("none", Map.of());
        call("set_budgets", List.of(List.of("all", 0.0, "budget all", "used up", topics)));
        for (int beat = 0; beat < 25; beat++) host.table.beat(beat * QuotaTable.BEAT_MS);
        assertTrue(Fence.closed());

        Fence.existing(new HashSet<>(topics));
        FenceFixture.reset();
    }

    // ---- the form of a call ----

    /** The bytes that Python writes for the values below. */
    private static final String GOLDEN = "4c0000000b530000000361736b4e544649fffffffffffffffe443fe00000000000005300000009"
            + "c3a9e5aea2f09d849e420000000200ff690000000200000001ffffffff64000000013ff80000000000004c0000000253000000004c00000000";

    @Test
    void pythonsBytesAreRead() {
        List<?> values = (List<?>) Wire.decode(HexFormat.of().parseHex(GOLDEN));

        assertEquals(Arrays.asList("ask", null, true, false, -2L, 0.5, "é客𝄞"), values.subList(0, 7));
        assertArrayEquals(new byte[] {0, -1}, (byte[]) values.get(7));
        assertArrayEquals(new int[] {1, -1}, (int[]) values.get(8));
        assertArrayEquals(new double[] {1.5}, (double[]) values.get(9));
        assertEquals(List.of("", List.of()), values.get(10));
    }
}
