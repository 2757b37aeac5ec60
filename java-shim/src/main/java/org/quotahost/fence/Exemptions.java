package org.quotahost.fence;

import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Names;

/**
 * The clients and topics that the fence never holds up: exempt clients have no quota and pass the fence, super users pass the
 * closed fence but have quotas, and the fence lets anybody write to a spared topic. The fence and the quota table read them on
 * request threads, without a lock. The host sets them (exemptions.py), except super users, which are read from the properties.
 *
 * <p>The exempt clients are listed principals, the brokers, and quotahost's own client. A name counts together with its type,
 * so Group:alice is not exempt when User:alice is. A principal without a type is a User, as for Kafka.
 */
public final class Exemptions {
    private static volatile Clients clients = new Clients(Map.of(), Set.of(), new String[0]);
    /** The super users in the form of the broker's properties: type, colon, name. */
    private static volatile Set<String> superUsers = Set.of();
    private static volatile Set<String> spared = Set.of();

    private Exemptions() {}

    /** The host's latest list of exempt clients; it is replaced as a whole. */
    private record Clients(Map<String, String> users, Set<String> anonymousClientIds, String[] internalClientIds) {
        /** Returns why this client-id of User:ANONYMOUS is exempt, or null. Called if ANONYMOUS as a whole is not exempt. */
        String reasonById(String clientId) {
            if (clientId == null || !Names.keeps(clientId)) return null;
            boolean isKnown = anonymousClientIds.contains(clientId);
            for (String form : internalClientIds) isKnown = isKnown || hasForm(clientId, form);
            return !isKnown ? null : clientId.startsWith("quotahost-") ? "plugin" : "broker";
        }
    }

    public static boolean isAnonymous(String user) {
        return user.equals(KafkaPrincipal.ANONYMOUS.getName());
    }

    /** Returns whether a client is exempt from quotas and passes the fence. The check neither waits nor allocates. */
    public static boolean exempt(KafkaPrincipal principal, String clientId) {
        return principal.getPrincipalType().equals(KafkaPrincipal.USER_TYPE) && reason(principal.getName(), clientId) != null;
    }

    /** Returns why a user is exempt under a client-id, or null if the user is not exempt. */
    public static String reason(String user, String clientId) {
        Clients now = clients;
        String listed = now.users.get(user);
        return listed != null || !isAnonymous(user) ? listed : now.reasonById(clientId);
    }

    /**
     * Returns whether a client-id matches a form of Kafka's own client-ids, which contain a node's id, such as "broker-#-*".
     * "#" stands for digits, and "*" at the end for one or more characters. A regular expression would allocate.
     */
    private static boolean hasForm(String clientId, String form) {
        int at = 0;
        for (int i = 0; i < form.length(); i++) {
            int begin = at;
            char wanted = form.charAt(i);
            boolean several = wanted == '#' || wanted == '*';
            while (at < clientId.length() && fits(clientId.charAt(at), wanted) && (several || at == begin)) at++;
            if (at == begin) return false;
        }
        return at == clientId.length();
    }

    private static boolean fits(char c, char wanted) {
        return wanted == '#' ? c >= '0' && c <= '9' : wanted == '*' || c == wanted;
    }

    /** Returns whether the fence lets everybody write to a topic. */
    static boolean spares(String topic) {
        return spared.contains(topic);
    }

    /** Returns whether a principal's requests always pass the closed fence. */
    static boolean isSuperUser(KafkaPrincipal principal) {
        Set<String> all = superUsers;
        return !all.isEmpty() && all.contains(principal.getPrincipalType() + ":" + principal.getName()); // toString() may be overridden
    }

    /** Returns whether a user's requests pass the closed fence, whatever the topic. */
    public static boolean passes(String user, String clientId) {
        return reason(user, clientId) != null || isSuperUser(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user));
    }

    /**
     * Replaces the exempt clients.
     *
     * @param users why each user is exempt, by name
     * @param internalClientIds the forms of client-ids, divided by "|", that are exempt if brokers do not authenticate to each
     *     other: those of Kafka's own clients inside a broker and of quotahost's client; "" if brokers authenticate
     */
    public static void set(Map<String, String> users, String[] anonymousClientIds, String internalClientIds) {
        clients = new Clients(Map.copyOf(users), Set.copyOf(Arrays.asList(anonymousClientIds)),
                internalClientIds.isEmpty() ? new String[0] : internalClientIds.split("\\|"));
    }

    /** Replaces the topics that the fence does not protect. ACLs decide who may write to them (exemptions.py). */
    public static void spare(String[] topics) {
        spared = Set.copyOf(Arrays.asList(topics));
    }

    /**
     * Reads the super users from the broker's properties, as StandardAuthorizer does. User:ANONYMOUS is left out: every client
     * that does not authenticate has this name, so the fence would be open to all of them.
     */
    public static void superUsers(Map<String, ?> configs) {
        String[] all = BrokerConfigs.text(configs.get("super.users")).split(";");
        superUsers = Set.copyOf(Arrays.stream(all).map(String::strip).filter(user -> !user.isEmpty()
                && !user.equals(KafkaPrincipal.ANONYMOUS.toString())).toList());
    }
}
