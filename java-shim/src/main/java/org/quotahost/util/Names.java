package org.quotahost.util;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/**
 * How long the names of principals and clients are that quotahost keeps. Kafka takes client-ids of 32,767 bytes, and a new one
 * with each request. What is kept of them, also the tags that Kafka keeps in its sensors, may only grow by count and by length
 * together: nothing posts, keeps, hashes or compares a longer name. A client-id is only a claim, and Kafka's own are short.
 */
public final class Names {
    public static final int LONGEST_CLIENT_ID = 256, LONGEST_PRINCIPAL = 1_024;
    /** In place of a client-id that is not kept: those of a principal are one client. Who really has this name is the same one. */
    public static final String LONG = "<long>";

    private Names() {}

    /** Nor is one kept with an end of a line: Kafka's JmxReporter leaves out its MBeans, so nobody would see what it uses. */
    public static boolean keeps(String clientId) {
        return clientId.length() <= LONGEST_CLIENT_ID && clientId.indexOf('\r') < 0 && clientId.indexOf('\u0085') < 0
                && clientId.indexOf('\u2028') < 0 && clientId.indexOf('\u2029') < 0; // \n is escaped (ObjectName.quote)
    }

    /** A client-id as it is kept; "" for none. */
    public static String kept(String claimed) {
        return claimed == null ? "" : keeps(claimed) ? claimed : LONG;
    }

    public static boolean keepsPrincipal(String name) {
        return name.length() <= LONGEST_PRINCIPAL;
    }

    /** As a metric tag: percent-encoded UTF-8. Kafka's own Sanitizer is at another place in 4.4 than before. */
    public static String tag(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A");
    }
}
