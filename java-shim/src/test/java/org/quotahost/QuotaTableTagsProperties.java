package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class QuotaTableTagsProperties {
    /** A client, the scope that it is given and the group's name if that is one. */
    record Member(String principal, String clientId, int code, String group) {
        /** Whom Kafka must measure as one. */
        List<String> measuredAs() {
            return switch (code) {
                case Scopes.CLIENT -> clientId.isEmpty() ? List.of("user", principal) : List.of("client", principal, clientId);
                case Scopes.USER -> List.of("user", principal);
                case Scopes.CLIENT_ID -> List.of("client-id", clientId);
                case Scopes.ALL -> List.of("broker");
                case Scopes.NEWCOMER -> List.of("newcomer");
                default -> List.of("group", group);
            };
        }
    }

    @Property
    void sensorNamesAreTheSameExactlyWhereTheScopeIs(@ForAll("members") List<Member> members) {
        Map<String, List<String>> scopeOf = new HashMap<>();
        Map<List<String>, String> nameOf = new HashMap<>();
        for (Member member : members) {
            String name = String.join(":", tags(member).values()); // ClientQuotaManager.metricTagsToSensorSuffix
            assertEquals(member.measuredAs(), scopeOf.computeIfAbsent(name, n -> member.measuredAs()), name);
            assertEquals(name, nameOf.computeIfAbsent(member.measuredAs(), n -> name));
        }
    }

    @Property
    void noTagIsEverNullAndTheUserNeverHoldsAColon(@ForAll("members") List<Member> members) {
        for (Member member : members) {
            Map<String, String> tags = tags(member);
            tags.forEach((key, value) -> assertNotNull(value, key));
            assertFalse(tags.get("user").contains(":"), tags.toString());
        }
    }

    private static Map<String, String> tags(Member member) {
        QuotaTable table = Given.table(10);
        Given.answer(table, member.principal(), member.clientId(), member.code(), 1_000_000, member.group());
        return table.tags(Given.FETCH, member.principal(), member.clientId());
    }

    @Provide
    Arbitrary<List<Member>> members() {
        // Few and nasty characters, so that names meet; a principal's name isn't empty.
        Arbitrary<String> text = Arbitraries.strings().withChars(":%<> /a3A\"é客").ofMaxLength(3);
        Arbitrary<String> known = Arbitraries.of("newcomers", "<newcomers>", "<broker>", "<group a>", "group a", "a");
        Arbitrary<String> name = Arbitraries.oneOf(text.filter(t -> !t.isEmpty()), known);
        Arbitrary<String> clientId = Arbitraries.oneOf(text, known);
        Arbitrary<Integer> code = Arbitraries.of(
                Scopes.CLIENT, Scopes.USER, Scopes.CLIENT_ID, Scopes.ALL, Scopes.NEWCOMER, Scopes.GROUP);
        return Combinators.combine(name, clientId, code, name).as(Member::new).filter(m -> !(m.code == Scopes.CLIENT_ID
                && m.clientId.isEmpty())).list().ofMinSize(1).ofMaxSize(30);
    }
}
