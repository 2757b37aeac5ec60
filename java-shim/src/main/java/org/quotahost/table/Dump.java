package org.quotahost.table;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.TurnedBack;
import org.quotahost.internals.ClientMeters;
import org.quotahost.table.Principals.Client;
import org.quotahost.table.Principals.Entry;
import org.quotahost.table.Principals.Known;

/**
 * What the table knows, raw: rates, limits, and what Kafka measures. Python words it (quotahost explain, top, metrics).
 *
 * <p>Each answer is a map or a list for Json. Kafka's MBeans are read without the table's lock, and not more than
 * MOST_READINGS of them for one question; of more scopes the readings are taken in turn. No request thread may come here.
 */
public final class Dump {
    /** Who has been silent for longer uses nothing: Kafka's rates look back for a few seconds only. */
    private static final int RECENT_BEATS = (int) (120_000 / QuotaTable.BEAT_MS);
    /** Some 60 ms. */
    private static final int MOST_READINGS = 20_000;
    private static final int PRODUCE = ClientQuotaType.PRODUCE.ordinal();
    private static final int REQUEST = ClientQuotaType.REQUEST.ordinal();
    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();

    private final QuotaTable table;

    public Dump(QuotaTable table) {
        this.table = table;
    }

    /** One scope's part for one type; what has turned a client of it back lately, "" for nothing. */
    private record Row(Scope scope, int type, String turnedBack) {
        double rate() {
            double own = scope.reading(type, false).rate();
            double slowed = scope.reading(type, true).rate();
            return Double.isNaN(slowed) ? own : Double.isNaN(own) ? slowed : own + slowed;
        }

        boolean isHeldBack() {
            return !turnedBack.isEmpty() || scope.reading(type, false).delayMs() > 0 || scope.reading(type, true).delayMs() > 0;
        }
    }

    // ---- questions -------------------------------------------------------------------------------------------

    /** The scopes in use lately: those held back first, then the busiest of each type in turn, as units can't be compared. */
    public synchronized List<Map<String, Object>> uses(int most) {
        Map<Scope, String> turnedBack = turnedBack();
        List<Row> rows = new ArrayList<>();
        for (Scope scope : recent()) {
            for (int type = 0; type < QuotaTable.TYPES; type++) {
                rows.add(new Row(scope, type, type == PRODUCE ? turnedBack.getOrDefault(scope, "") : ""));
            }
        }
        measure(rows, most);
        rows.removeIf(row -> Double.isNaN(row.rate()) && row.turnedBack.isEmpty());
        Comparator<Row> busiest = Comparator.comparing(Row::isHeldBack).thenComparingDouble(Dump::orNothing).reversed();
        rows.sort(busiest);
        int[] ranks = new int[QuotaTable.TYPES];
        Map<Row, Integer> rank = new IdentityHashMap<>();
        for (Row each : rows) rank.put(each, ranks[each.type]++);
        rows.sort(Comparator.comparing(Row::isHeldBack).reversed().thenComparingInt(rank::get));
        return rows.stream().limit(most).map(this::row).toList();
    }

    /** The scopes of one client each that produce or fetch, the busiest first. */
    public synchronized List<Map<String, Object>> usage(int most) {
        List<Row> rows = new ArrayList<>();
        for (Scope scope : recent()) {
            if (!isOfOneClient(scope)) continue;
            for (int type = PRODUCE; type < REQUEST; type++) rows.add(new Row(scope, type, ""));
        }
        measure(rows, most);
        rows.removeIf(row -> Double.isNaN(row.rate()));
        rows.sort(Comparator.comparingDouble(Row::rate).reversed());
        return rows.stream().limit(most).map(this::row).toList();
    }

    /** One client: what it has of each quota type. */
    public synchronized Map<String, Object> client(String principal, String clientId) {
        Entry entry = table.principals().entry(principal);
        Client client = entry == null ? null : entry.client(clientId);
        boolean exempt = Exemptions.exempt(Publication.byName(principal), clientId);
        List<Map<String, Object>> quotas = new ArrayList<>();
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            Scope scope = scope(entry, client, clientId, exempt, type);
            boolean shares = client == null && entry != null && scope == entry.all[type];
            Known known = client != null ? client : shares ? entry : null;
            scope.read(type, System.nanoTime());
            Map<String, Object> row = row(new Row(scope, type, ""));
            row.put("supplier", known == null ? "" : known.answer.suppliers()[type]);
            row.put("known", (known != null || exempt) && !Scopes.isOfNewcomers(scope));
            row.put("failed", client != null ? client.failed : shares && entry.failed);
            row.put("shadow", known == null ? "" : known.answer.shadow());
            quotas.add(row);
        }
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("principal", principal);
        all.put("client_id", clientId);
        all.put("exempt", exempt);
        all.put("passes", Exemptions.passes(principal, clientId));
        all.put("mark", mark(principal, clientId));
        all.put("turned_back", TurnedBack.by(principal, clientId));
        all.put("quotas", quotas);
        return all;
    }

    /**
     * Every principal and client that was seen lately and that Kafka measures, for the types that rules in shadow are about:
     * principal, client-id, whether it stands for all client-ids of the principal, type, the two tags, base rate, stand-in,
     * rate, whether exempt, whether a newcomer, supplier, what suppliers in shadow would give, whether marked, whether a
     * closed fence lets it pass.
     *
     * @param only the name of one type, or "" for all
     */
    public synchronized List<Object[]> holders(String only) {
        List<Object[]> all = new ArrayList<>();
        List<Row> rows = new ArrayList<>();
        List<Integer> types = IntStream.rangeClosed(PRODUCE, REQUEST).boxed()
                .filter(type -> only.isEmpty() || TYPES[type].name().equals(only)).toList();
        for (Scope scope : recent()) for (int type : types) rows.add(new Row(scope, type, ""));
        measure(rows, 0);
        int now = table.now();
        table.principals().forEach(entry -> {
            boolean isRecent = entry.idle(now) <= RECENT_BEATS;
            for (int type : types) {
                if (isRecent && entry.all[type] != null) hold(all, entry, entry.sample, true, entry, entry.all[type], type);
            }
            for (Client client : entry.clients.values()) {
                if (client.idle(now) > RECENT_BEATS) continue;
                for (int type : types) {
                    hold(all, entry, client.clientId, false, client, client.tags(type).scope, type);
                }
            }
        });
        return all;
    }

    private void hold(List<Object[]> all, Entry entry, String clientId, boolean whole, Known known, Scope scope, int type) {
        double rate = new Row(scope, type, "").rate();
        if (Double.isNaN(rate)) return;
        all.add(new Object[] {entry.name, clientId, whole, TYPES[type].name(), scope.own.user, scope.own.clientId,
            scope.base(type), scope.standIn(type), rate, scope.exempt, Scopes.isOfNewcomers(scope),
            known.answer.suppliers()[type], known.answer.shadow(), table.marks().has(entry.name, clientId),
            Exemptions.passes(entry.name, clientId)});
    }

    /** Principal, client-id and topic of at most so many clients that are marked by name. */
    public List<String[]> marks(int most) {
        return table.marks().list(most);
    }

    // ---- rows ------------------------------------------------------------------------------------------------

    private Map<String, Object> row(Row row) {
        Scope scope = row.scope;
        int type = row.type;
        Rule rule = table.rule();
        ClientMeters.Reading own = scope.reading(type, false);
        ClientMeters.Reading slowed = scope.reading(type, true);
        Tags ofSlowed = rule.slowed() == null ? scope.own : scope.slowedToShow();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("type", TYPES[type].name());
        fields.put("user", scope.own.user);
        fields.put("client_id", scope.own.clientId);
        fields.put("base", scope.base(type));
        fields.put("limit", rule.limit(scope.own, type));
        fields.put("slowed_limit", rule.limit(ofSlowed, type));
        fields.put("stand_in", scope.standIn(type));
        fields.put("newcomers", rule.newcomers()[type]);
        fields.put("exempt", scope.exempt);
        fields.put("rate", own.rate());
        fields.put("delay_ms", own.delayMs());
        fields.put("slowed_rate", slowed.rate());
        fields.put("slowed_delay_ms", slowed.delayMs());
        fields.put("tokens", Double.isNaN(own.tokens()) ? slowed.tokens() : own.tokens());
        fields.put("idle_ms", Math.max(0, table.now() - scope.seen()) * QuotaTable.BEAT_MS);
        fields.put("turned_back", row.turnedBack);
        if (isOfOneClient(scope)) {
            fields.put("mark", mark(scope.principal(), scope.own.clientId));
            fields.put("passes", Exemptions.passes(scope.principal(), scope.own.clientId));
        } else {
            fields.put("mark", null);
        }
        return fields;
    }

    private Map<String, Object> mark(String principal, String clientId) {
        Affected topics = table.factorInForce().affected();
        String topic = topics == null ? null : table.marks().topic(principal, clientId);
        return topic == null ? null : Map.of("topic", topic, "place", topics.place(topic), "held", topics.holds(topic));
    }

    /** The scope of a client, as a request thread finds it. */
    private Scope scope(Entry entry, Client client, String clientId, boolean exempt, int type) {
        if (client != null) return client.tags(type).scope;
        boolean shares = entry != null && entry.all[type] != null && !entry.isDistinct(clientId);
        if (shares && (!exempt || entry.all[type].exempt)) return entry.all[type];
        return exempt ? table.scopes().exempt : entry != null ? entry.unknown(type, table.now()) : table.scopes().newcomers;
    }

    private static boolean isOfOneClient(Scope scope) {
        return !scope.own.clientId.isEmpty() && !scope.own.user.isEmpty() && !scope.own.user.startsWith("<");
    }

    private List<Scope> recent() {
        List<Scope> scopes = new ArrayList<>();
        int now = table.now();
        table.scopes().forEach(scope -> {
            if (scope.wasHad() && now - scope.seen() <= RECENT_BEATS) scopes.add(scope);
        });
        return scopes;
    }

    /** The scopes of those whom the fence or topic quotas have turned back lately. */
    private Map<Scope, String> turnedBack() {
        Map<Scope, String> byScope = new IdentityHashMap<>();
        TurnedBack.lately().forEach((each, last) -> {
            Entry entry = table.principals().entry(each.principal());
            Client client = entry == null ? null : entry.client(each.clientId());
            boolean exempt = Exemptions.exempt(Publication.byName(each.principal()), each.clientId());
            Scope scope = scope(entry, client, each.clientId(), exempt, PRODUCE);
            byScope.merge(scope, last.by(), (a, b) -> a.equals("fence") ? a : b);
        });
        return byScope;
    }

    /** Reads those whose last readings are the oldest, and then those anew that are in front now. */
    private static void measure(List<Row> rows, int most) {
        long began = System.nanoTime();
        rows.sort(Comparator.comparingLong(row -> row.scope.readAt(row.type)));
        rows.stream().limit(MOST_READINGS).forEach(row -> row.scope.read(row.type, began));
        if (rows.size() <= MOST_READINGS) return;
        rows.stream().filter(row -> row.scope.readAt(row.type) != began)
                .sorted(Comparator.comparingDouble(Dump::orNothing).reversed()).limit(2L * most)
                .forEach(row -> row.scope.read(row.type, began));
    }

    private static double orNothing(Row row) {
        double rate = row.rate();
        return Double.isNaN(rate) ? 0 : rate;
    }
}
