package org.quotahost.util;

/** Any text as one field of a tab-separated line, and, for pipes and arguments of whatever encoding, as ASCII. */
public final class Escape {
    private Escape() {}

    /** One line; a tab or backslash within a field is escaped. */
    public static String fields(Object... values) {
        StringBuilder line = new StringBuilder();
        for (Object value : values) {
            if (!line.isEmpty()) line.append('\t');
            line.append(field(String.valueOf(value)));
        }
        return line.toString();
    }

    static String field(String text) {
        return text.replace("\\", "\\\\").replace("\t", "\\t");
    }

    /** A line of fields with all that isn't printable ASCII, the tabs between them apart, as backslash, u and four digits. */
    public static String ascii(String line) {
        StringBuilder plain = new StringBuilder(line.length());
        for (char c : line.toCharArray()) {
            if (c == '\t' || c >= ' ' && c <= '~') plain.append(c);
            else plain.append("\\u%04x".formatted((int) c));
        }
        return plain.toString();
    }

    /** The text of a field that field() and ascii() made. */
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
