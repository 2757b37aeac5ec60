package org.quotahost.host;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Encodes calls like Python (quotahost.broker.host.messages.encode). */
final class PythonCalls {
    private PythonCalls() {}

    static byte[] bytes(Object... call) {
        var out = new ByteArrayOutputStream();
        try {
            write(List.of(call), new DataOutputStream(out));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return out.toByteArray();
    }

    private static void write(Object value, DataOutputStream out) throws IOException {
        if (value instanceof Number number) {
            out.writeByte(number instanceof Double ? 'D' : 'I');
            out.writeLong(number instanceof Double real ? Double.doubleToLongBits(real) : number.longValue());
        } else if (value instanceof List<?> items) {
            out.writeByte('L');
            out.writeInt(items.size());
            for (Object item : items) write(item, out);
        } else if (value instanceof Boolean is) {
            out.writeByte(is ? 'T' : 'F');
        } else if (value instanceof double[] numbers) {
            out.writeByte('d');
            out.writeInt(numbers.length);
            for (double number : numbers) out.writeDouble(number);
        } else if (value instanceof int[] numbers) {
            out.writeByte('i');
            out.writeInt(numbers.length);
            for (int number : numbers) out.writeInt(number);
        } else {
            byte[] content = value instanceof byte[] bytes ? bytes : ((String) value).getBytes(StandardCharsets.UTF_8);
            out.writeByte(value instanceof byte[] ? 'B' : 'S');
            out.writeInt(content.length);
            out.write(content);
        }
    }
}
