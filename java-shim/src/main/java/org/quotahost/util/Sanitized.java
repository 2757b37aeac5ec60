package org.quotahost.util;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import javax.management.ObjectName;

/**
 * Names as Kafka writes them into metric tags and into the names of its MBeans.
 *
 * <p>Kafka's own class, Sanitizer, is at another place in 4.4 than before; a test holds this one equal to it.
 */
public final class Sanitized {
    private static final Pattern PLAIN = Pattern.compile("[\\w-%\\. \t]*");

    private Sanitized() {}

    /** As a metric tag: percent-encoded UTF-8. */
    public static String tag(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A");
    }

    /** As a value in an MBean's name: quoted if it needs to be. */
    public static String bean(String value) {
        return PLAIN.matcher(value).matches() ? value : ObjectName.quote(value);
    }
}
