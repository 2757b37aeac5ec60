package org.quotahost.table;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.fence.TurnedBack;
import org.quotahost.table.ClientUse.Who;

/**
 * Lists who uses what of this broker: each scope that Kafka measures, with its twin, those held back first.
 *
 * <p>A list is made in three steps. Under the table's lock it finds the scopes that somebody has had lately; without it, it
 * reads Kafka's MBeans of all of them, which takes some microseconds each, and picks the first; under the lock again it
 * tells their quotas and what binds them. No request thread may come here.
 */
final class ClientUses {
    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();
    private static final int NEVER = Integer.MIN_VALUE;

    private final Object lock;
    private final Scopes scopes;
    private final Remembered remembered;
    private final LookUp lookUp;
    private final Slowing slowing;
    private final Shadows shadows;

    /** @param lock the table's */
    ClientUses(Object lock, Scopes scopes, Remembered remembered, LookUp lookUp, Slowing slowing,
            Shadows shadows) {
        this.lock = lock;
        this.scopes = scopes;
        this.remembered = remembered;
        this.lookUp = lookUp;
        this.slowing = slowing;
        this.shadows = shadows;
    }

    /** One scope's part for one type. A client of it was turned back lately by this, or by NOTHING. */
    private record Seen(Tags tags, int type, long idleMs, Bound turnedBack) {}

    private record Measured(Seen seen, KafkaRates.Reading now) {
        boolean isHeldBack() {
            return now.delayMs() > 0 || seen.turnedBack != Bound.NOTHING;
        }

        double rate() {
            return Double.isNaN(now.rate()) ? 0 : now.rate();
        }
    }

    /** Those who are held back first, then the busiest of each type in turn: the units of types can't be compared. */
    List<ClientUse> list(int most) {
        if (most <= 0) return List.of();
        List<Measured> first = first(measured(seen()), most);
        synchronized (lock) {
            return first.stream().map(this::use).toList();
        }
    }

    // ---- who was there lately --------------------------------------------------------------------------------

    private List<Seen> seen() {
        synchronized (lock) {
            Map<Tags, int[]> beats = new IdentityHashMap<>();
            for (Tags each : List.of(scopes.newcomers, scopes.unlimited, scopes.exempt)) {
                for (int type = 0; type < Tags.TYPES; type++) see(beats, each, type, lookUp.now());
            }
            remembered.forEach(principal -> see(beats, principal));
            Map<Tags, Bound> turnedBack = turnedBack();
            turnedBack.keySet().forEach(tags -> see(beats, tags, Tags.PRODUCE, lookUp.now()));
            List<Seen> all = new ArrayList<>(beats.size());
            beats.forEach((tags, at) -> add(all, tags, at, turnedBack.getOrDefault(tags, Bound.NOTHING)));
            return all;
        }
    }

    private static void see(Map<Tags, int[]> beats, Principal principal) {
        Whole whole = principal.whole();
        for (int type = 0; type < Tags.TYPES; type++) {
            int at = principal.seen(type);
            if (whole.tags()[type] != null) see(beats, whole.tags()[type], type, at);
            if (whole.unknown()[type] != whole.tags()[type]) see(beats, whole.unknown()[type], type, at);
            for (Client client : principal.clients.values()) see(beats, client.tags(type), type, client.seen(type));
        }
    }

    private static void see(Map<Tags, int[]> beats, Tags tags, int type, int beat) {
        int[] last = beats.get(tags);
        if (last == null) {
            last = new int[] {NEVER, NEVER, NEVER, NEVER};
            beats.put(tags, last);
        }
        if (last[type] == NEVER || beat - last[type] > 0) last[type] = beat;
    }

    private void add(List<Seen> all, Tags tags, int[] beats, Bound turnedBack) {
        for (int type = 0; type < Tags.TYPES; type++) {
            if (beats[type] == NEVER) continue;
            long idleMs = (lookUp.now() - beats[type]) * QuotaTable.BEAT_MS;
            Bound by = type == Tags.PRODUCE ? turnedBack : Bound.NOTHING;
            if (idleMs <= Usage.RECENT_MS) all.add(new Seen(tags, type, idleMs, by));
        }
    }

    /** The scopes of those whom the fence or topic quotas have turned back lately. */
    private Map<Tags, Bound> turnedBack() {
        Map<Tags, Bound> scopesOf = new IdentityHashMap<>();
        for (var each : TurnedBack.lately()) {
            Principal principal = remembered.principal(each.principal());
            Client client = principal == null ? null : principal.client(each.clientId());
            boolean exempt = Fence.exempt(Publication.byName(each.principal()), each.clientId());
            Tags tags = Description.tags(Tags.PRODUCE, principal == null ? null : principal.whole(), client,
                    each.clientId(), exempt, scopes);
            Bound by = Bound.turnsBack(each.principal(), each.clientId(),
                    slowing.topic(each.principal(), each.clientId()), slowing.affected());
            if (by != Bound.NOTHING) scopesOf.merge(tags, by, (a, b) -> a == Bound.FENCE ? a : b);
        }
        return scopesOf;
    }

    // ---- what Kafka measures ---------------------------------------------------------------------------------

    private static List<Measured> measured(List<Seen> seen) {
        List<Measured> all = new ArrayList<>();
        for (Seen each : seen) {
            var measured = new Measured(each, KafkaRates.read(TYPES[each.type], each.tags));
            if (measured.isHeldBack() || !Double.isNaN(measured.now.rate())) all.add(measured);
        }
        return all;
    }

    private static List<Measured> first(List<Measured> all, int most) {
        all.sort(Comparator.comparing(Measured::isHeldBack).thenComparingDouble(Measured::rate).reversed());
        int[] ranks = new int[Tags.TYPES];
        Map<Measured, Integer> rank = new IdentityHashMap<>();
        for (Measured each : all) rank.put(each, ranks[each.seen.type]++);
        all.sort(Comparator.comparing(Measured::isHeldBack).reversed().thenComparingInt(rank::get));
        return all.subList(0, Math.min(most, all.size()));
    }

    // ---- what the table knows --------------------------------------------------------------------------------

    private ClientUse use(Measured measured) {
        Seen seen = measured.seen;
        Who who = Who.of(seen.tags);
        String topic = who.isOneClient() ? slowing.topic(who.user(), who.clientId()) : null;
        boolean slowed = scopes.rule().factors(seen.type) && (who.isOneClient() ? topic != null : measured.now.slowedMore());
        Bound turnedBack = seen.turnedBack;
        if (who.isOneClient() && turnedBack == Bound.NOTHING) {
            turnedBack = Bound.turnsBack(who.user(), who.clientId(), topic, slowing.affected());
        }
        Description quota = Description.of(seen.type, seen.tags, scopes.rule(), slowed, turnedBack);
        return new ClientUse(who, quota, measured.now, seen.idleMs, shadows.holds(seen.type, seen.tags));
    }
}
