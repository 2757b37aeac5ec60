package org.quotahost.fence;

import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Names;

/**
 * Who is never held up: the exempt have no quota and pass the fence, super users pass the fence alone; and the topics
 * for whose writers the fence never closes. The fence and the quota table ask on request threads, without a lock; the
 * host says who (exemptions.py).
 *
 * <p>The exempt are listed principals, the brokers, and quotahost's own client. A name counts with its type, so that no
 * Group:alice goes for User:alice; a principal without a type is a User for Kafka, too.
 */
public final class Exemptions {
    private static volatile Clients clients = new Clients(Map.of(), Set.of(), new String[0]);
    /** The super users, as the broker's properties write them: type, colon, name. */
    private static volatile Set<String> superUsers = Set.of();
    private static volatile Set<String> spared = Set.of();

    private Exemptions() {}

    /** What the host has said last; replaced as a whole. */
    private record Clients(Map<String, String> users, Set<String> anonymousClientIds, String[] internalClientIds) {
        /** Why an ANONYMOUS who is not exempt as a whole is exempt under a client-id; null if it is not. */
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

    /** Whether a client is exempt from quotas and passes the fence. It neither waits nor allocates. */
    public static boolean exempt(KafkaPrincipal principal, String clientId) {
        return principal.getPrincipalType().equals(KafkaPrincipal.USER_TYPE) && reason(principal.getName(), clientId) != null;
    }

    /** Why a user is exempt under a client-id; null if it is not. */
    public static String reason(String user, String clientId) {
        Clients now = clients;
        String listed = now.users.get(user);
        return listed != null || !isAnonymous(user) ? listed : now.reasonById(clientId);
    }

    /**
     * Whether a client-id has a form, as Kafka makes them of a node's id: "broker-#-*", say. "#" stands for digits, and
     * "*" at the end for one or more characters. A regular expression would allocate.
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

    /** Whether the fence lets everybody write to a topic. */
    static boolean spares(String topic) {
        return spared.contains(topic);
    }

    /** Whether the fence, while it is closed, never turns a principal's requests back. */
    static boolean isSuperUser(KafkaPrincipal principal) {
        Set<String> all = superUsers;
        return !all.isEmpty() && all.contains(principal.getPrincipalType() + ":" + principal.getName()); // a subclass may print more
    }

    /** Whether a user's requests go on while the fence is closed, whatever the topic. */
    public static boolean passes(String user, String clientId) {
        return reason(user, clientId) != null || isSuperUser(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user));
    }

    /**
     * @param users by name, why each is exempt
     * @param internalClientIds forms of client-ids, divided by "|", that are exempt where brokers do not authenticate to
     *     each other: those of Kafka's own clients inside a broker and of quotahost's; "" if brokers authenticate
     */
    public static void set(Map<String, String> users, String[] anonymousClientIds, String internalClientIds) {
        clients = new Clients(Map.copyOf(users), Set.copyOf(Arrays.asList(anonymousClientIds)),
                internalClientIds.isEmpty() ? new String[0] : internalClientIds.split("\\|"));
    }

    /** Replaces the topics that the fence does not protect: who may write to them is up to ACLs (exemptions.py). */
    public static void spare(String[] topics) {
        spared = Set.copyOf(Arrays.asList(topics));
    }

    /**
     * Takes the super users from the broker's properties, as StandardAuthorizer reads them. User:ANONYMOUS is none here: as
     * everybody who does not authenticate, it would open the fence to all of them.
     */
    public static void superUsers(Map<String, ?> configs) {
        String[] all = BrokerConfigs.text(configs.get("super.users")).split(";");
        superUsers = Set.copyOf(Arrays.stream(all).map(String::strip).filter(user -> !user.isEmpty()
                && !user.equals(KafkaPrincipal.ANONYMOUS.toString())).toList());
    }
}
