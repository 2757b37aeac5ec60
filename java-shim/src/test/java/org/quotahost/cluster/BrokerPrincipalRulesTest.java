package org.quotahost.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.util.LogCapture;

/** Which listeners the principals come from, and which user of a JAAS configuration. */
class BrokerPrincipalRulesTest {
    private static final String PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required ";
    private static final String SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required ";

    private final Map<String, Object> configs = new HashMap<>(Map.of(
            "process.roles", "broker,controller",
            "listener.security.protocol.map", "CLIENTS:SASL_SSL,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name", "INTERNAL", "sasl.mechanism.inter.broker.protocol", "SCRAM-SHA-512",
            "controller.listener.names", "CONTROLLER", "sasl.mechanism.controller.protocol", "PLAIN",
            "listener.name.internal.scram-sha-512.sasl.jaas.config", SCRAM + "username=\"broker\" password=\"hunter2\";",
            "listener.name.controller.plain.sasl.jaas.config", PLAIN + "username=\"controller\" password=\"hunter2\";"));

    private List<String> names() {
        return BrokerPrincipal.names(configs);
    }

    @Test
    void theInterBrokerListenersAndTheControllersUserAreBothNamed() {
        configs.put("listener.name.clients.plain.sasl.jaas.config", PLAIN + "username=\"someone\" password=\"hunter2\";");

        assertEquals(List.of("broker", "controller"), names());
    }

    @Test
    void oneUserForBothIsNamedOnce() {
        configs.put("listener.name.controller.plain.sasl.jaas.config", PLAIN + "username=\"broker\" password=\"hunter2\";");

        assertEquals(List.of("broker"), names());
    }

    @Test
    void parsedValuesAreReadLikeRawOnes() {
        List<String> raw = names();
        configs.put("process.roles", List.of("broker", "controller"));
        configs.put("controller.listener.names", List.of("CONTROLLER"));
        configs.replaceAll((name, value) -> name.endsWith("jaas.config") ? new Password((String) value) : value);

        assertEquals(raw, names());
    }

    @Test
    void aListenerWhoseNameIsPartOfTheControllersHasItsOwnMechanism() {
        configs.put("listener.security.protocol.map", "CONTROL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT");
        configs.put("inter.broker.listener.name", "CONTROL");
        configs.put("listener.name.control.scram-sha-512.sasl.jaas.config", SCRAM + "username=\"broker\" password=\"hunter2\";");

        assertEquals(List.of("broker", "controller"), names());
    }

    @ParameterizedTest
    @ValueSource(strings = {"secret username=mallory", "username=\\\"mallory\\\"", "x; username=mallory"})
    void aPasswordIsNotMistakenForTheUser(String password) {
        configs.put("listener.name.internal.scram-sha-512.sasl.jaas.config", SCRAM + "password=\"" + password + "\" username=\"broker\";");

        assertEquals(List.of("broker", "controller"), names());
    }

    @Test
    void theNameOfAnOptionMayBeQuotedToo() {
        configs.put("listener.name.internal.scram-sha-512.sasl.jaas.config",
                SCRAM + "\"user_a\"=\"b\" \"password\"=\"\\\"username\\\"=c\" \"username\"=\"broker\";");

        assertEquals(List.of("broker", "controller"), names());
    }

    @Test
    void anOAuthBearersNameIsOnlyKnownIfItIsUnsecured() {
        configs.put("sasl.mechanism.inter.broker.protocol", "OAUTHBEARER");
        String module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required ";
        configs.put("listener.name.internal.oauthbearer.sasl.jaas.config", module + "unsecuredLoginStringClaim_sub=\"broker\";");
        assertEquals(List.of("broker", "controller"), names());

        configs.put("listener.name.internal.oauthbearer.sasl.jaas.config", module + "clientId=\"c\" clientSecret=\"hunter2\";");
        assertEquals(List.of("controller"), names());
    }

    @Test
    void theTurkishLetterIMakesNoDifference() {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("tr"));
        try {
            assertEquals(List.of("broker", "controller"), names());
        } finally {
            Locale.setDefault(before);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"CLIENTS:PLAINTEXT", "CLIENTS:SSL"})
    void controllersWithoutAuthenticationMakeNobodyABrokerWhereClientsHaveNoneEither(String clients) {
        configs.put("listener.security.protocol.map", clients + ",INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT");
        configs.put("listeners", "CLIENTS://:1,INTERNAL://:2,CONTROLLER://:3");

        assertEquals(List.of("broker"), names(), "or any client at CLIENTS could claim a broker's client-id");
    }

    @Test
    void whereOnlyNodesCanBeAnonymousTheyAre() {
        configs.put("listener.security.protocol.map", "CLIENTS:SSL,INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT");
        configs.put("listener.name.clients.ssl.client.auth", "required");
        configs.put("listeners", "CLIENTS://:1,INTERNAL://:2,CONTROLLER://:3");

        assertEquals(List.of("broker", "ANONYMOUS"), names());
    }

    @Test
    void onANodeThatIsOnlyAControllerTheControllersListenerDecides() {
        configs.put("process.roles", "controller");
        configs.put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT");
        configs.remove("inter.broker.listener.name");
        assertEquals(List.of("ANONYMOUS"), names());

        configs.put("listener.security.protocol.map", "CONTROLLER:SASL_PLAINTEXT");
        assertEquals(List.of("controller"), names(), "it has no listener of brokers, whose default is no authentication");
    }

    @ParameterizedTest
    @ValueSource(strings = {SCRAM + "password=\"hunter2\";", SCRAM + "username=\"x\" password=\"hunter2", "hunter2", ";", ""})
    void aPrincipalThatCannotBeFoundIsLoggedWithTheRemedyAndWithoutTheSecret(String jaas) {
        configs.put("listener.name.internal.scram-sha-512.sasl.jaas.config", new Password(jaas));

        String log = LogCapture.during(() -> assertTrue(names().contains("controller")));

        assertFalse(log.contains("hunter2"), log);
        if (!names().contains("x")) assertTrue(log.contains("static.excluded.principal.name.list") && log.contains("WARN"), log);
    }

    @Test
    void nonsenseNeverStopsTheBrokerHere() {
        configs.put("inter.broker.listener.name", "NO:SUCH,LISTENER");
        configs.put("listener.security.protocol.map", ",:,A,B:C:D");
        configs.put("controller.listener.names", " , ");

        names();
    }
}
