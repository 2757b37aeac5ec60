package org.quotahost.fence;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The clients whose produce requests were turned back lately, and by what: Kafka measures nothing of such a request.
 *
 * <p>A client-id is only a claim, so at most MOST clients are kept, none whose names are too long, and each for LATELY_MS
 * after its last request. While all places are taken, further clients are left out. Readers take the old ones away.
 */
public final class TurnedBackClients {
    static final int MOST = 1_000;
    static final long LATELY_MS = 15_000;

    private static final ConcurrentHashMap<Client, TurnedBack> clients = new ConcurrentHashMap<>();

    private TurnedBackClients() {}

    private record Client(String principal, String clientId) {}

    /** That a client was turned back, by topic quotas or else by the closed fence. */
    public record TurnedBack(String principal, String clientId, boolean byTopics, long atMs) {
        private boolean isOver(long nowMs) {
            return nowMs - atMs > LATELY_MS;
        }
    }

    /** Notes that a request of this client is turned back now. */
    static void note(String principal, String clientId, boolean byTopics) {
        if (principal.length() > Exemptions.LONGEST_CLIENT_ID || clientId.length() > Exemptions.LONGEST_CLIENT_ID) return;
        Client client = new Client(principal, clientId);
        if (clients.size() < MOST || clients.containsKey(client)) {
            clients.put(client, new TurnedBack(principal, clientId, byTopics, nowMs()));
        }
    }

    /** Whether topic quotas have turned a request of this client back lately. */
    public static boolean byTopics(String principal, String clientId) {
        TurnedBack last = clients.get(new Client(principal, clientId));
        return last != null && last.byTopics && !last.isOver(nowMs());
    }

    /** All who were turned back lately. */
    public static Collection<TurnedBack> lately() {
        long now = nowMs();
        for (Map.Entry<Client, TurnedBack> each : clients.entrySet()) {
            if (each.getValue().isOver(now)) clients.remove(each.getKey(), each.getValue());
        }
        return clients.values();
    }

    /** Forgets all; for tests. */
    static void forget() {
        clients.clear();
    }

    private static long nowMs() {
        return System.nanoTime() / 1_000_000;
    }
}
