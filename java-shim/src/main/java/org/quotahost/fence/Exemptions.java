package org.quotahost.fence;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.quotahost.util.BrokerConfigs;

/**
 * Who is never held up. The fence and the quota table ask on request threads, without a lock; the host says who
 * (exemptions.py).
 *
 * <p>The exempt have no quota and pass a closed fence: listed principals, the brokers, quotahost's own client. Super
 * users pass the fence alone and keep their quotas. A name counts with its type, so that no Group:alice goes for
 * User:alice; a principal without a type is a User for Kafka, too.
 */
public final class Exemptions {
    private static final KafkaPrincipal NOBODY = KafkaPrincipal.ANONYMOUS;
    /**
     * A longer client-id is neither hashed nor compared, here or by the quota table: it is only a claim, and Kafka's own
     * are short.
     */
    public static final int LONGEST_CLIENT_ID = 256;

    private static volatile Clients clients = new Clients(Set.of(), Set.of(), List.of());
    /** The super users, as the broker's properties write them: type, colon, name. */
    private static volatile Set<String> superUsers = Set.of();
    private static volatile Set<String> spared = Set.of();

    private Exemptions() {}

    /** What the host has said last; replaced as a whole. */
    private record Clients(Set<String> users, Set<String> anonymousClientIds, List<ClientIdForm> internalClientIds) {
        boolean contains(KafkaPrincipal principal, String clientId) {
            if (!principal.getPrincipalType().equals(KafkaPrincipal.USER_TYPE)) return false;
            if (users.contains(principal.getName())) return true;
            if (clientId == null || !principal.getName().equals(NOBODY.getName())) return false;
            return clientId.length() <= LONGEST_CLIENT_ID
                    && (anonymousClientIds.contains(clientId) || isInternal(clientId));
        }

        private boolean isInternal(String clientId) {
            for (int i = 0; i < internalClientIds.size(); i++) {
                if (internalClientIds.get(i).matches(clientId)) return true;
            }
            return false;
        }
    }

    // ---- request threads -------------------------------------------------------------------------------------

    /** Whether a client is exempt from quotas and passes the fence. */
    public static boolean exempt(KafkaPrincipal principal, String clientId) {
        return clients.contains(principal, clientId);
    }

    /** Whether the fence lets everybody write to a topic. */
    static boolean spares(String topic) {
        return spared.contains(topic);
    }

    /** Whether the fence, while it is closed, never turns a principal's requests back. */
    static boolean isSuperUser(KafkaPrincipal principal) {
        Set<String> all = superUsers;
        return !all.isEmpty() && all.contains(principal.toString());
    }

    // ---- the host and the authorizer -------------------------------------------------------------------------

    /**
     * Replaces the exempt clients.
     *
     * @param users names of principals of the type User
     * @param anonymousClientIds client-ids of clients that do not authenticate and so are ANONYMOUS
     * @param internalClientIds forms of client-ids (ClientIdForm) that are exempt where brokers do not authenticate to
     *     each other: those of Kafka's own clients inside a broker and of quotahost's; "" if brokers authenticate
     */
    static void set(String[] users, String[] anonymousClientIds, String internalClientIds) {
        clients = new Clients(Set.copyOf(Arrays.asList(users)), Set.copyOf(Arrays.asList(anonymousClientIds)),
                ClientIdForm.parse(internalClientIds));
    }

    /** Replaces the topics that the fence does not protect: who may write to them is up to ACLs (exemptions.py). */
    static void spare(String[] topics) {
        spared = Set.copyOf(Arrays.asList(topics));
    }

    /**
     * Takes the super users from the broker's properties, as StandardAuthorizer reads them.
     *
     * <p>User:ANONYMOUS is none here: as everybody who does not authenticate, it would open the fence to all of them.
     */
    static void superUsers(Map<String, ?> configs) {
        superUsers = Set.copyOf(Arrays.stream(BrokerConfigs.text(configs.get("super.users")).split(";"))
                .map(String::strip).filter(user -> !user.isEmpty() && !user.equals(NOBODY.toString())).toList());
    }

    /**
     * A form of client-ids, as Kafka makes them of a node's id: "broker-#-*", say.
     *
     * <p>"#" stands for digits, and "*" at the end for one or more characters that are no white space. The quota table
     * compares a client-id on each request of an ANONYMOUS client, so this allocates nothing, as a regular expression
     * would.
     *
     * @param head what stands before the digits, or all of it if there are none
     * @param tail what follows them, without the "*"
     */
    private record ClientIdForm(String head, boolean digits, String tail, boolean open) {
        private static final String BLANKS = " \t\n\u000B\f\r";

        /** The forms in a text, divided by "|"; none in "". */
        static List<ClientIdForm> parse(String text) {
            return Stream.of(text.split("\\|")).filter(form -> !form.isEmpty()).map(ClientIdForm::of).toList();
        }

        private static ClientIdForm of(String text) {
            boolean open = text.endsWith("*");
            String whole = open ? text.substring(0, text.length() - 1) : text;
            int at = whole.indexOf('#');
            return at < 0 ? new ClientIdForm(whole, false, "", open)
                    : new ClientIdForm(whole.substring(0, at), true, whole.substring(at + 1), open);
        }

        boolean matches(String clientId) {
            if (!clientId.startsWith(head)) return false;
            int at = head.length();
            if (digits) {
                while (at < clientId.length() && clientId.charAt(at) >= '0' && clientId.charAt(at) <= '9') at++;
                if (at == head.length() || !clientId.startsWith(tail, at)) return false;
                at += tail.length();
            }
            return open ? hasNoBlanks(clientId, at) : at == clientId.length();
        }

        private static boolean hasNoBlanks(String text, int from) {
            for (int i = from; i < text.length(); i++) if (BLANKS.indexOf(text.charAt(i)) >= 0) return false;
            return from < text.length();
        }
    }
}
