package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.util.BrokerConfigs;

/** What Python may call; broker tests see what the calls do. */
class CallsTest {
    private final PythonHost host = new PythonHost(new BrokerConfigs(Map.of(), Map.of("node.id", "7")));
    private final Life life = new Life.InBroker(host,
            new BrokerConfigs(Map.of("client.quota.callback.static.produce", "1M"), Map.of()), new CompletableFuture<>());
    private final Calls calls = life.calls;

    private List<?> call(Object... call) {
        return (List<?>) Wire.decode(calls.call(Wire.encode(call)));
    }

    @Test
    void everyCallThatPythonDeclaresIsAnsweredAndNoOther() {
        assertEquals(Calls.DECLARED.keySet(), calls.handlers.keySet());
    }

    @Test
    void anAnswerIsAValueOrAProblemAndNeverAnException() {
        assertEquals(List.of("node.id", "7"), call("broker").get(1));
        assertEquals(List.of("client.quota.callback.static.produce", "1M"), call("properties").get(1));
        for (Object[] wrong : new Object[][] {{"gauge"}, {"gauge", 1, 2, 3, 4}, {"nonsense"}, {}, {"ready", List.of(1)}}) {
            assertTrue(call(wrong).get(0) instanceof String, String.valueOf(call(wrong)));
        }
        assertTrue(Wire.decode(calls.call(new byte[] {'?'})) instanceof List<?> answer && answer.get(0) instanceof String);
    }

    @Test
    void aPythonOfAnotherProtocolIsRefusedWithARemedy() {
        assertEquals(null, call("hello", Calls.VERSION, "1.0").get(0));
        String problem = String.valueOf(call("hello", Calls.VERSION + 1, "9.9").get(0));
        assertTrue(problem.contains("quotahost 9.9") && problem.contains("one release"), problem);
        assertTrue(life.ready.isCompletedExceptionally());
    }

    @Test
    void aCallThatIsLargerThanDeclaredIsNotRead() {
        byte[] large = Wire.encode(List.of("fence", "x".repeat(Calls.DECLARED.get("fence").most())));
        assertThrows(IllegalArgumentException.class, () -> Calls.read(large));
    }

    private void assertTaken(long timeoutMs, Object... expected) {
        assertArrayEquals(Wire.encode(new Object[] {null, expected}), calls.call(Wire.encode(List.of("take", timeoutMs))));
    }

    @Test
    void aBatchThatIsNotAnsweredIsTakenOnceMore() {
        host.inbox.postClient("alice", "app");
        assertTaken(0, 1, new String[] {"alice", "app"}, false);

        life.close();
        assertTaken(60_000, 0, new String[0], true);
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
        Thread left = new Thread(() -> calls.call(Wire.encode(List.of("take", 500L))));
        left.start();
        while (left.getState() != Thread.State.TIMED_WAITING) Thread.onSpinWait();

        life.giveBack(host.inbox);
        host.inbox.postClient("alice", "app");
        left.join();

        assertEquals(1, host.inbox.take(0).clients().size());
        assertTaken(60_000, 0, new String[0], true);
    }
}
