package org.quotahost.table;

import static org.quotahost.table.FactorInForce.FETCH;
import static org.quotahost.table.FactorInForce.PRODUCE;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.TurnedBack;
import org.quotahost.internals.KafkaBeans.Reading;
import org.quotahost.table.Principals.Entry;
import org.quotahost.table.Principals.TagHolder;
import org.quotahost.util.Json;

/**
 * The raw data of the table for operators: rates, limits, and Kafka's measurements. Python turns them into words (quotahost
 * explain, top, metrics). Kafka's MBeans are read without the table's lock, for the MOST_SCOPES last used scopes at most.
 */
public final class Dump {
    /** A client that was silent for longer uses nothing: Kafka's rates look back only a few seconds. */
    private static final int RECENT_BEATS = (int) (120_000 / QuotaTable.BEAT_MS);
    /** About 0.2 s, as a reading takes about 3 us for each quota type. */
    private static final int MOST_SCOPES = 20_000;
    private static final ClientQuotaType[] TYPES = ClientQuotaType.values();

    private final QuotaTable table;

    public Dump(QuotaTable table) {
        this.table = table;
    }

    /** One scope for one type: Kafka's measurements, and what has lately turned back a client of the scope, or "". */
    private record Row(Scope scope, int type, Reading own, Reading slowed, double rate, String turnedBack) {
        static Row of(Scope scope, int type, String turnedBack) {
            Reading own = scope.read(type, false), slowed = scope.read(type, true);
            return new Row(scope, type, own, slowed, own.and(slowed).rate(), turnedBack);
        }

        boolean isHeldBack() {
            return !turnedBack.isEmpty() || own.delayMs() > 0 || slowed.delayMs() > 0;
        }
    }

    /** Returns recently used scopes: first those held back, then the busiest of each type in turn, since units differ. */
    public List<Map<String, Object>> uses(int most) {
        Map<Scope, String> turnedBack = turnedBack();
        List<Row> rows = new ArrayList<>();
        for (Scope scope : recent()) {
            for (int type = 0; type < QuotaTable.TYPES; type++) {
                Row row = Row.of(scope, type, type == PRODUCE ? turnedBack.getOrDefault(scope, "") : "");
                if (!Double.isNaN(row.rate) || !row.turnedBack.isEmpty()) rows.add(row);
            }
        }
        Comparator<Row> heldBackFirst = Comparator.comparing(row -> !row.isHeldBack());
        rows.sort(heldBackFirst.thenComparingDouble(row -> -row.rate));
        int[] ranks = new int[QuotaTable.TYPES];
        Map<Row, Integer> rank = new IdentityHashMap<>();
        for (Row row : rows) rank.put(row, ranks[row.type]++);
        return rows.stream().sorted(heldBackFirst.thenComparing(rank::get)).limit(most).map(this::fields).toList();
    }

    /** Returns the scopes of one client each that produce or fetch, the busiest first. */
    public List<Map<String, Object>> usage(int most) {
        List<Row> rows = new ArrayList<>();
        for (Scope scope : recent()) {
            for (int type = PRODUCE; type <= FETCH && isOfOneClient(scope); type++) rows.add(Row.of(scope, type, ""));
        }
        return rows.stream().filter(row -> !Double.isNaN(row.rate)).sorted(Comparator.comparingDouble(Row::rate).reversed())
                .limit(most).map(this::fields).toList();
    }

    /** Returns what one client has of each quota type. */
    public Map<String, Object> client(String principal, String clientId) {
        Entry entry = table.principals.entry(principal);
        TagHolder client = entry == null ? null : entry.client(clientId);
        String reason = Exemptions.reason(principal, clientId);
        boolean exempt = reason != null;
        List<Map<String, Object>> quotas = new ArrayList<>();
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            Scope scope = scope(principal, clientId, type);
            boolean shares = client == null && entry != null && scope == entry.all[type];
            TagHolder holder = client != null ? client : shares ? entry : null;
            Map<String, Object> row = fields(Row.of(scope, type, ""));
            row.put("supplier", exempt ? reason : holder == null ? "" : holder.answer.quotas()[type].supplier());
            row.put("known", (holder != null || exempt) && !Scopes.isOfNewcomers(scope));
            row.put("failed", holder != null && holder.failed);
            row.put("shadow", holder == null ? "" : holder.answer.shadow());
            quotas.add(row);
        }
        return Json.object("principal", principal, "client_id", clientId, "exempt", exempt,
                "passes", Exemptions.passes(principal, clientId), "mark", mark(principal, clientId),
                "address", table.principals.address(principal, clientId), "turned_back", TurnedBack.by(principal, clientId),
                "quotas", quotas);
    }

    /** Returns all principals and clients seen lately that Kafka measures, for one type (addHolder has the order of the columns). */
    public List<Object[]> holders(String typeName) {
        int type = ClientQuotaType.valueOf(typeName).ordinal();
        Map<Scope, Double> rates = new IdentityHashMap<>();
        for (Scope scope : recent()) rates.put(scope, scope.read(type).rate());
        List<Object[]> holders = new ArrayList<>();
        table.principals.forEach(entry -> {
            addHolder(holders, rates, entry, entry.sample(), entry.all[type], type);
            for (TagHolder client : entry.clients.values()) {
                addHolder(holders, rates, client, client.clientId, client.tags(type).scope, type);
            }
        });
        return holders;
    }

    private void addHolder(List<Object[]> holders, Map<Scope, Double> rates, TagHolder holder, String clientId, Scope scope,
            int type) {
        double rate = rates.getOrDefault(scope, Double.NaN);
        if (Double.isNaN(rate) || holder.idle(table.now) > RECENT_BEATS) return;
        String principal = holder.principal;
        holders.add(new Object[] {principal, clientId, holder.clientId == null, TYPES[type].name(), scope.own.user,
            scope.own.clientId, scope.base(type), scope.standIn(type), rate, Scopes.isOfNewcomers(scope),
            holder.answer.quotas()[type].supplier(), holder.answer.shadow(), table.marks.topic(principal, clientId) != null,
            Exemptions.passes(principal, clientId)});
    }

    public List<String[]> marks(int most) {
        return table.marks.list(most);
    }

    // ---- rows ------------------------------------------------------------------------------------------------

    private Map<String, Object> fields(Row row) {
        Scope scope = row.scope;
        int type = row.type;
        Rule rule = table.factorInForce.rule();
        String user = isOfOneClient(scope) ? decoded(scope) : null;
        String group = user == null ? null : table.marks.group(user, scope.own.clientId, rule.slowing(type));
        // A marked client may not have asked for its tags yet.
        Tags ofSlowed = group == null ? scope.slowedLast(rule) : scope.slowed(group);
        Reading own = row.own, slowed = row.slowed;
        Map<String, Object> fields = Json.object("type", TYPES[type].name(), "user", scope.own.user,
                "client_id", scope.own.clientId, "base", scope.base(type), "stand_in", scope.standIn(type),
                "newcomers", table.scopes.newcomers.base(type), "exempt", scope.isExempt(),
                "limit", rule.limit(scope.own, type), "slowed_limit", rule.limit(ofSlowed, type),
                "rate", own.rate(), "delay_ms", own.delayMs(), "slowed_rate", slowed.rate(), "slowed_delay_ms", slowed.delayMs(),
                "tokens", group == null && own != Reading.NOTHING ? own.tokens() : slowed.tokens(), // of the bucket in use
                "idle_ms", Math.max(0, table.now - scope.seen()) * QuotaTable.BEAT_MS, "turned_back", row.turnedBack);
        fields.put("address", isOfOneUser(scope) ? table.principals.address(decoded(scope), scope.own.clientId) : "");
        if (user != null) {
            fields.put("mark", mark(user, scope.own.clientId));
            fields.put("passes", Exemptions.passes(user, scope.own.clientId));
        }
        return fields;
    }

    private static String decoded(Scope scope) {
        return URLDecoder.decode(scope.own.user, StandardCharsets.UTF_8);
    }

    private Map<String, Object> mark(String principal, String clientId) {
        Marks.Affected affected = table.factorInForce.rule().affected();
        String topic = affected == null ? null : table.marks.topic(principal, clientId);
        Marks.AffectedTopic of = topic == null ? null : affected.topics().get(topic);
        return of == null ? null : Json.object("topic", topic, "place", of.place(), "held", of.held(),
                "budget", of.of().group(), "factor", of.of().factor());
    }

    /** Returns the scope that a request thread would find. */
    private Scope scope(String principal, String clientId, int type) {
        Entry entry = table.principals.entry(principal);
        TagHolder client = entry == null ? null : entry.client(clientId);
        return client != null ? client.tags(type).scope
                : table.scopeOf(type, entry, Exemptions.reason(principal, clientId) != null);
    }

    private static boolean isOfOneClient(Scope scope) {
        return !scope.own.clientId.isEmpty() && isOfOneUser(scope);
    }

    private static boolean isOfOneUser(Scope scope) {
        return !scope.own.user.isEmpty() && !scope.own.user.startsWith("<");
    }

    private List<Scope> recent() {
        Map<Scope, Integer> idle = new IdentityHashMap<>(); // idle times change meanwhile
        int now = table.now;
        table.scopes.forEach(scope -> {
            if (scope.wasHad() && now - scope.seen() <= RECENT_BEATS) idle.put(scope, now - scope.seen());
        });
        List<Scope> scopes = new ArrayList<>(idle.keySet());
        if (scopes.size() <= MOST_SCOPES) return scopes;
        scopes.sort(Comparator.comparing(idle::get));
        return scopes.subList(0, MOST_SCOPES);
    }

    /** Returns the scopes of clients that the fence or topic quotas have turned back lately. */
    private Map<Scope, String> turnedBack() {
        Map<Scope, String> byScope = new IdentityHashMap<>();
        TurnedBack.clients.forEach((turned, last) -> byScope.merge(scope(turned.principal(), turned.clientId(), PRODUCE),
                last.by(), (one, other) -> one.equals("fence") ? one : other));
        return byScope;
    }
}
