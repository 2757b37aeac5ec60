package org.quotahost.util;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/**
 * The longest names of principals and clients that quotahost keeps. Kafka accepts client-ids of 32,767 bytes, and a new one
 * with each request. The memory for names, also for the tags in Kafka's sensors, must be bounded by count and by length, so no
 * longer name is posted, kept, hashed or compared. A client-id is only a claim, and Kafka's own client-ids are short.
 */
public final class Names {
    public static final int LONGEST_CLIENT_ID = 256, LONGEST_PRINCIPAL = 1_024;
    /** The one name for all client-ids of a principal that are not kept. A client with this very name is the same client. */
    public static final String LONG = "<long>";

    private Names() {}

    /** A client-id with a line end is not kept either: Kafka's JmxReporter leaves out its MBeans, so nobody would see its usage. */
    public static boolean keeps(String clientId) {
        return clientId.length() <= LONGEST_CLIENT_ID && clientId.indexOf('\r') < 0 && clientId.indexOf('\u0085') < 0
                && clientId.indexOf('\u2028') < 0 && clientId.indexOf('\u2029') < 0; // \n is escaped (ObjectName.quote)
    }

    /** Returns the client-id under which a client is kept; "" for null. */
    public static String kept(String claimed) {
        return claimed == null ? "" : keeps(claimed) ? claimed : LONG;
    }

    public static boolean keepsPrincipal(String name) {
        return name.length() <= LONGEST_PRINCIPAL;
    }

    /** Returns the name as a metric tag: percent-encoded UTF-8. Kafka's own Sanitizer is in another package in 4.4 than before. */
    public static String tag(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A");
    }
}
