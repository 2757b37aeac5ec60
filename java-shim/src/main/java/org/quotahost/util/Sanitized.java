package org.quotahost.util;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.regex.Pattern;
import javax.management.ObjectName;

/**
 * Names as Kafka writes them into metric tags and into the names of its MBeans.
 *
 * <p>Kafka's own class, Sanitizer, is at another place in 4.4 than before; a test holds this one equal to it.
 */
public final class Sanitized {
    private static final Pattern PLAIN = Pattern.compile("[\\w-%\\. \t]*");
    private static final HexFormat HEX = HexFormat.of().withUpperCase();

    private Sanitized() {}

    /** As a metric tag: percent-encoded UTF-8. */
    public static String tag(String name) {
        // Most names are plain; sanitizing takes longer than all else that is made for a new principal.
        int plain = 0;
        while (plain < name.length() && isUnreserved(name.charAt(plain))) plain++;
        if (plain == name.length()) return name;
        StringBuilder text = new StringBuilder(name.length() + 16);
        for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
            if (isUnreserved(each)) text.append((char) each);
            else text.append('%').append(HEX.toHexDigits(each));
        }
        return text.toString();
    }

    private static boolean isUnreserved(int c) {
        return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_';
    }

    /** As a value in an MBean's name: quoted if it needs to be. */
    public static String bean(String value) {
        return PLAIN.matcher(value).matches() ? value : ObjectName.quote(value);
    }
}
