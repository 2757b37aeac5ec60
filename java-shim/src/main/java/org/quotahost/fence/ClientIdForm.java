package org.quotahost.fence;

import java.util.List;
import java.util.stream.Stream;

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
record ClientIdForm(String head, boolean digits, String tail, boolean open) {
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
