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
        if (isPlain(name)) return name;
        StringBuilder text = new StringBuilder(name.length() + 16);
        for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
            if (isUnreserved(each)) text.append((char) each);
            else text.append('%').append(HEX.toHexDigits(each));
        }
        return text.toString();
    }

    /** Most names are; sanitizing takes longer than all else that is made for a new principal. */
    private static boolean isPlain(String name) {
        for (int i = 0; i < name.length(); i++) if (name.charAt(i) > 127 || !isUnreserved((byte) name.charAt(i))) return false;
        return true;
    }

    private static boolean isUnreserved(byte each) {
        return each >= 'a' && each <= 'z' || each >= 'A' && each <= 'Z' || each >= '0' && each <= '9' || each == '.'
                || each == '-' || each == '_';
    }

    /** As a value in an MBean's name: quoted if it needs to be. */
    public static String bean(String value) {
        return PLAIN.matcher(value).matches() ? value : ObjectName.quote(value);
    }
}
