package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** Tests that the tags equal those of Kafka's own callback (ClientQuotaManager.DefaultQuotaCallback). */
class TagsTest {
    /** A client, the scope of its quota, and the name of the group if the scope is a group. */
    record Member(String principal, String clientId, int code, String group) {
        /** Clients with the same value must share a sensor. As in Kafka, a client without a client-id shares its user's sensor. */
        List<String> measuredAs() {
            return switch (code) {
                case Scopes.CLIENT -> clientId.isEmpty() ? List.of("user", principal) : List.of("client", principal, clientId);
                case Scopes.USER -> List.of("user", principal);
                case Scopes.CLIENT_ID -> List.of("client-id", clientId);
                case Scopes.ALL -> List.of("broker");
                case Scopes.NEWCOMER -> List.of("newcomers", principal);
                default -> List.of("group", group);
            };
        }

        Map<String, String> tags() {
            QuotaTable table = Tables.table();
            Tables.publish(table, principal, clientId, code, 1_000, group);
            return Tables.tags(table, principal, clientId);
        }
    }

    @Property
    void sensorNamesAreTheSameExactlyWhereTheScopeIs(@ForAll("members") List<Member> members) {
        Map<String, List<String>> scopeOf = new HashMap<>();
        Map<List<String>, String> nameOf = new HashMap<>();
        for (Member member : members) {
            Map<String, String> tags = member.tags();
            assertFalse(tags.containsValue(null));
            assertEquals(List.of("user", "client-id"), List.copyOf(tags.keySet()));
            assertEquals(List.copyOf(tags.values()), tags.entrySet().stream().map(Map.Entry::getValue).toList());
            String name = String.join(":", tags.values()); // ClientQuotaManager.metricTagsToSensorSuffix
            assertEquals(member.measuredAs(), scopeOf.computeIfAbsent(name, n -> member.measuredAs()), name);
            assertEquals(name, nameOf.computeIfAbsent(member.measuredAs(), n -> name));
        }
    }

    /** Uses few and awkward characters, so that names collide. A principal, a group and a shared client-id are never empty. */
    @Provide
    Arbitrary<List<Member>> members() {
        Arbitrary<String> text = Arbitraries.strings().withChars(":%<> /a3A\"é客").ofMaxLength(3);
        Arbitrary<String> known = Arbitraries.of("newcomers", "<newcomers>", "<broker>", "<group a>", "group a", "a");
        Arbitrary<String> any = Arbitraries.oneOf(text, known);
        Arbitrary<String> named = any.filter(name -> !name.isEmpty());
        Arbitrary<Integer> code = Arbitraries.of(0, 1, 2, 3, Scopes.NEWCOMER, Scopes.GROUP);
        return Combinators.combine(named, any, code, named).as(Member::new)
                .filter(m -> m.code != Scopes.CLIENT_ID || !m.clientId.isEmpty()).list().ofMinSize(1).ofMaxSize(30);
    }
}
