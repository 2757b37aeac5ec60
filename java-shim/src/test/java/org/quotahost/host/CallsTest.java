package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.util.BrokerConfigs;

/** What Python may call; broker tests see what the calls do. */
class CallsTest {
    private final PythonHost host = new PythonHost(new BrokerConfigs(Map.of(), Map.of("node.id", "7")));
    private final Life life = new Life.InBroker(host,
            new BrokerConfigs(Map.of("client.quota.callback.static.produce", "1M"), Map.of()), new CompletableFuture<>());
    private final Calls calls = life.calls;

    /** The answer in JSON: [problem, value]. */
    private String call(Object... call) {
        return text(calls.call(PythonCalls.bytes(call)));
    }

    private static String text(byte[] answer) {
        return new String(answer, StandardCharsets.US_ASCII);
    }

    @Test
    void everyCallThatPythonDeclaresIsAnsweredAndNoOther() {
        assertEquals(Calls.DECLARED, calls.handlers.keySet());
    }

    @Test
    void anAnswerIsAValueOrAProblemAndNeverAnException() {
        assertEquals("[null,{\"node.id\":\"7\"}]", call("broker"));
        assertEquals("[null,{\"client.quota.callback.static.produce\":\"1M\"}]", call("properties"));
        for (Object[] wrong : new Object[][] {{"gauge"}, {"gauge", 1, 2, 3, 4}, {"nonsense"}, {}, {"ready", List.of(1)}}) {
            assertTrue(call(wrong).matches("\\[\".*\",null]"), call(wrong));
        }
        assertTrue(text(calls.call(new byte[] {'?'})).matches("\\[\".*\",null]"));
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
    void aBatchThatIsNotAnsweredIsTakenOnceMore() {
        host.inbox.postClient("alice", "app\ud800"); // as a principal builder may make it; no plugin could write it
        assertEquals("[null,[[[\"alice\",\"app?\"]],[],false]]", call("take", 0L));

        life.close();
        assertEquals("[null,[[],[],true]]", call("take", 60_000L));
        life.giveBack(host.inbox);

        Batch again = host.inbox.take(0);
        assertEquals(List.of("alice"), again.clients().stream().map(Batch.Lookup::principal).toList());
        assertTrue(again.clients().get(0).posted());
        life.giveBack(host.inbox);
        assertEquals(List.of(), host.inbox.take(0).clients());
    }

    /** Such a call waits on when its process has ended, and another life begins. */
    @Test
    void aCallOfALifeThatIsOverTakesNothingFromTheNextOne() throws Exception {
        Thread left = new Thread(() -> call("take", 500L));
        left.start();
        while (left.getState() != Thread.State.TIMED_WAITING) Thread.onSpinWait();

        life.giveBack(host.inbox);
        host.inbox.postClient("alice", "app");
        left.join();

        assertEquals(1, host.inbox.take(0).clients().size());
        assertEquals("[null,[[],[],true]]", call("take", 60_000L));
    }
}
