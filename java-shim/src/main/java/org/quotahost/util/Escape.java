package org.quotahost.util;

/**
 * Writes any text as one field of a tab-separated line, and such lines as plain ASCII.
 *
 * <p>Principals and client-ids may contain tabs, line breaks and any other character, and the lines in which
 * operators and Python read them pass through pipes, arguments and consoles of unknown encodings. Python's half is
 * {@code quotahost.host.messages}.
 */
public final class Escape {
    private Escape() {}

    /** One line of tab-separated fields; within a field a tab becomes "\t" and a backslash is doubled. */
    public static String fields(Object... values) {
        StringBuilder line = new StringBuilder();
        for (Object value : values) {
            if (!line.isEmpty()) line.append('\t');
            line.append(field(String.valueOf(value)));
        }
        return line.toString();
    }

    private static String field(String text) {
        return text.replace("\\", "\\\\").replace("\t", "\\t");
    }

    /**
     * A line of fields in which every other character than printable ASCII and the tabs is a backslash, u and four
     * digits.
     */
    public static String ascii(String line) {
        StringBuilder plain = new StringBuilder(line.length());
        for (char c : line.toCharArray()) {
            if (c == '\t' || c >= ' ' && c <= '~') plain.append(c);
            else plain.append("\\u%04x".formatted((int) c));
        }
        return plain.toString();
    }

    /** The text of a field that fields() and ascii() wrote. */
    public static String plain(String field) {
        StringBuilder text = new StringBuilder(field.length());
        for (int i = 0; i < field.length(); i++) {
            char c = field.charAt(i);
            if (c != '\\') {
                text.append(c);
                continue;
            }
            char kind = field.charAt(++i);
            if (kind == 'u') {
                text.append((char) Integer.parseInt(field, i + 1, i + 5, 16));
                i += 4;
            } else {
                text.append(kind == 't' ? '\t' : kind);
            }
        }
        return text.toString();
    }
}
