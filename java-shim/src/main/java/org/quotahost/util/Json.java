package org.quotahost.util;

import java.lang.reflect.Array;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * A writer of JSON, the form in which the shim sends its data to Python: maps, lists, arrays, texts, numbers, booleans, null.
 *
 * <p>A number that is not finite becomes null. The text is ASCII, since a name may contain any character, and even half of a
 * surrogate pair.
 */
public final class Json {
    private Json() {}

    /** A text that is already JSON. */
    public record Raw(String json) {}

    /** Returns an object of these names and values, which alternate. */
    public static Map<String, Object> object(Object... pairs) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) object.put((String) pairs[i], pairs[i + 1]);
        return object;
    }

    public static String text(Object value) {
        StringBuilder out = new StringBuilder(256);
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            char before = '{';
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(before);
                write(String.valueOf(entry.getKey()), out);
                write(entry.getValue(), out.append(':'));
                before = ',';
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            int begin = out.length();
            for (Object each : list) write(each, out.append(out.length() == begin ? '[' : ','));
            out.append(out.length() == begin ? "[]" : "]");
        } else if (value != null && value.getClass().isArray()) {
            write(IntStream.range(0, Array.getLength(value)).mapToObj(i -> Array.get(value, i)).toList(), out);
        } else if (value instanceof Double number) {
            out.append(Double.isFinite(number) ? number.toString() : "null");
        } else if (value instanceof Raw raw) {
            out.append(raw.json);
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            quote(value.toString(), out);
        }
    }

    private static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c >= ' ' && c <= '~') out.append(c);
            else out.append("\\u").append(HexFormat.of().toHexDigits(c));
        }
        out.append('"');
    }
}
