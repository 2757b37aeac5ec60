package org.quotahost.table;

import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.fence.Fence;
import org.quotahost.util.Sanitized;

/**
 * One principal in the quota table: what holds for all its client-ids, and those of its clients that have something
 * of their own.
 *
 * <p>Request threads read it and write seen; all else is written under the table's lock. The map's keys are texts,
 * which Java arranges as a tree where many have one hash; so names that were chosen to collide are no slower.
 */
final class Principal extends Known {
    final String name;
    /** The name as Kafka has it in tags, sanitized. */
    final String user;
    /** Whether some of its client-ids may be exempt: anybody may be this principal, a broker too (Fence.exempt). */
    private final boolean anonymous;
    final ConcurrentHashMap<String, Client> clients = new ConcurrentHashMap<>(2);
    /** One of the clients, which is found without the map: most users have one. */
    volatile Client first;

    private volatile Whole whole;

    /** A client-id by which the host can ask for the principal's answer again. */
    String sample;
    /** By quota type, what suppliers in shadow would give; null for nothing. */
    WouldBe[] would;
    /** A supplier failed for it, so the host asks again. */
    boolean unresolved;
    /** Until this beat of the table's clock, unknown client-ids may keep the tags that all had before. */
    int formerUntil;

    Principal(String name, String sample, int now) {
        super(now);
        this.name = name;
        this.user = isPlain(name) ? name : Sanitized.tag(name);
        this.sample = sample;
        this.anonymous = name.equals(KafkaPrincipal.ANONYMOUS.getName());
    }

    /** Whether sanitizing would change nothing; it takes longer than all else that is made for a principal. */
    private static boolean isPlain(String name) {
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean letter = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9';
            if (!letter && c != '-' && c != '_' && c != '.') return false;
        }
        return true;
    }

    Whole whole() {
        return whole;
    }

    /** Replaces the answer. If no client-id is looked at, the tags of all types are found in the principal itself. */
    void whole(Whole next) {
        boolean plain = !anonymous && next.distinct().isEmpty() && next.complete();
        tags(plain ? next.tags() : new Tags[Tags.TYPES]);
        whole = next;
    }

    /** The client with this client-id, or null. */
    Client client(String clientId) {
        Client one = first;
        if (one != null && one.clientId.equals(clientId)) return one;
        return Names.keeps(clientId) ? clients.get(clientId) : null;
    }

    /** Whether a client-id has something of its own, though the others need nothing. */
    boolean distinguishes(Whole now, KafkaPrincipal principal, String clientId) {
        return now.distinct().contains(clientId) || anonymous && Fence.exempt(principal, clientId);
    }
}
