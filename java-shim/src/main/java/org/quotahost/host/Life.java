package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;

/**
 * One life of the Python host, in this process or in a child: how far its start has come, and what it has taken.
 *
 * <p>Python reads its settings (starting), builds its plugins (built) and puts them in force (ready); then it takes batches
 * and publishes their answers, until it is told that it has to end (close). A host that is to follow one that still serves
 * waits between built and ready for its turn.
 */
final class Life {
    /** How many batches with clients a host may have taken and not answered; it has one at a time. */
    private static final int MOST_TAKEN = 16;

    /** With which it starts, those of quotahost. */
    final Map<String, String> properties;
    /** How many ms its plugins may take, once it has read the settings. */
    final CompletableFuture<Long> starting = new CompletableFuture<>();
    final CompletableFuture<Void> built = new CompletableFuture<>();
    final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final CountDownLatch turn;
    private volatile boolean closing;
    /** Why it cannot use its configuration, null if it can. */
    private volatile String refusal;
    /** Batches whose clients have no answer yet, by their numbers. */
    private final TreeMap<Long, Batch> taken = new TreeMap<>();
    private long batches;

    /** @param waits whether it waits for its turn, because another host serves */
    Life(Map<String, String> properties, boolean waits) {
        this.properties = properties;
        turn = new CountDownLatch(waits ? 1 : 0);
    }

    /** Whether another host still serves in its place. */
    boolean waits() {
        return turn.getCount() > 0;
    }

    /** How many ms its plugins may take; 0 until it says so. */
    long startMs() {
        return starting.isCompletedExceptionally() ? 0 : starting.getNow(0L);
    }

    boolean isBuilt() {
        return built.isDone() && !built.isCompletedExceptionally();
    }

    boolean isReady() {
        return ready.isDone() && !ready.isCompletedExceptionally();
    }

    /** Its plugins are built; it waits for its turn. */
    void awaitTurn() throws InterruptedException {
        built.complete(null);
        turn.await();
    }

    /** The host before it has ended. */
    void takeTurn() {
        turn.countDown();
    }

    /** It cannot use its configuration, and ends: whoever waits for its start hears why. */
    void refuse(String problem) {
        refusal = problem;
        fail(problem);
    }

    /** It has ended, because of this problem if it has told none itself. Answers which. */
    String end(String problem) {
        String why = refusal != null ? refusal : problem;
        fail(why);
        return why;
    }

    private void fail(String why) {
        for (CompletableFuture<?> step : List.of(starting, built, ready)) step.completeExceptionally(new ConfigException(why));
    }

    /** Tells it to end, with the batch that it takes next. */
    void close() {
        closing = true;
    }

    boolean closing() {
        return closing;
    }

    /** Keeps a batch that it takes until it is answered. Answers its number. */
    synchronized long take(Batch batch) {
        batches++;
        if (!batch.clients().isEmpty()) taken.put(batches, batch);
        if (taken.size() > MOST_TAKEN) taken.pollFirstEntry();
        return batches;
    }

    /** The batch of this number, which is answered by now; an empty one if it is not known. */
    synchronized Batch answered(long number) {
        Batch batch = taken.remove(number);
        return batch != null ? batch : new Batch(List.of(), List.of());
    }

    /** Has its next one asked for the clients that it has taken and not answered. */
    synchronized void giveBack(Inbox inbox) {
        taken.values().forEach(batch -> batch.clients().forEach(inbox::askAgain));
        taken.clear();
    }
}
