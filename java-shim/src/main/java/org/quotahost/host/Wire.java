package org.quotahost.host;

import java.io.ByteArrayOutputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/**
 * The bytes of a call or an answer, as Python's half makes and reads them (quotahost.broker.host.messages).
 *
 * <p>A value is one letter for its type and then, big-endian, its content; texts, bytes, arrays and lists begin with their
 * length.
 */
final class Wire {
    private Wire() {}

    /** The bytes of null, a Boolean, Integer, Long, Double, String, byte[], an array or a collection of these. */
    static byte[] encode(Object value) {
        ByteBuffer out = write(value, ByteBuffer.allocate(256));
        return Arrays.copyOf(out.array(), out.position());
    }

    private static ByteBuffer write(Object value, ByteBuffer out) {
        if (value == null) return room(out, 1).put((byte) 'N');
        if (value instanceof Boolean is) return room(out, 1).put((byte) (is ? 'T' : 'F'));
        if (value instanceof Double number) return room(out, 9).put((byte) 'D').putDouble(number);
        if (value instanceof Number number) return room(out, 9).put((byte) 'I').putLong(number.longValue());
        // Half a surrogate pair, as a principal builder may make it, becomes a question mark.
        if (value instanceof String text) return sized('S', text.getBytes(StandardCharsets.UTF_8), out);
        if (value instanceof byte[] bytes) return sized('B', bytes, out);
        if (value instanceof String[] texts) return texts(texts, out);
        Collection<?> items = value instanceof Object[] array ? Arrays.asList(array) : (Collection<?>) value;
        ByteBuffer all = room(out, 5).put((byte) 'L').putInt(items.size());
        for (Object item : items) all = write(item, all);
        return all;
    }

    private static ByteBuffer sized(char type, byte[] bytes, ByteBuffer out) {
        return room(out, 5 + bytes.length).put((byte) type).putInt(bytes.length).put(bytes);
    }

    /**
     * Texts at once: the lengths of all in code points, and then all as one text. To decode that and to cut it is the
     * quickest way into Python.
     */
    private static ByteBuffer texts(String[] texts, ByteBuffer out) {
        var utf8 = new ByteArrayOutputStream(16 * texts.length);
        // Each by itself: two halves of a surrogate pair in neighbours would become one code point, and shift all that follow.
        for (String text : texts) utf8.writeBytes(text.getBytes(StandardCharsets.UTF_8));
        ByteBuffer all = room(out, 9 + Integer.BYTES * texts.length + utf8.size()).put((byte) 't').putInt(texts.length);
        for (String text : texts) all.putInt(text.codePointCount(0, text.length()));
        return all.putInt(utf8.size()).put(utf8.toByteArray());
    }

    private static ByteBuffer room(ByteBuffer out, int bytes) {
        if (out.remaining() >= bytes) return out;
        return ByteBuffer.allocate(Math.addExact(2 * out.position(), bytes)).put(out.flip());
    }

    /** The value of these bytes: null, Boolean, Long, Double, String, byte[], int[], double[] or List; else IllegalArgumentException. */
    static Object decode(byte[] message) {
        ByteBuffer in = ByteBuffer.wrap(message);
        try {
            Object value = read(in);
            if (!in.hasRemaining()) return value;
        } catch (BufferUnderflowException e) {
            throw new IllegalArgumentException("a message is cut", e);
        }
        throw new IllegalArgumentException("a message has " + in.remaining() + " bytes too many");
    }

    private static Object read(ByteBuffer in) {
        char type = (char) in.get();
        return switch (type) {
            case 'N' -> null;
            case 'T' -> true;
            case 'F' -> false;
            case 'I' -> in.getLong();
            case 'D' -> in.getDouble();
            case 'S' -> new String(bytes(in), StandardCharsets.UTF_8);
            case 'B' -> bytes(in);
            case 'L' -> {
                List<Object> items = new ArrayList<>();
                for (int left = size(in, 1); left > 0; left--) items.add(read(in));
                yield items;
            }
            case 'i' -> {
                int[] numbers = new int[size(in, Integer.BYTES)];
                for (int i = 0; i < numbers.length; i++) numbers[i] = in.getInt();
                yield numbers;
            }
            case 'd' -> {
                double[] numbers = new double[size(in, Double.BYTES)];
                for (int i = 0; i < numbers.length; i++) numbers[i] = in.getDouble();
                yield numbers;
            }
            default -> throw new IllegalArgumentException("a message has a value of no known type");
        };
    }

    private static byte[] bytes(ByteBuffer in) {
        byte[] bytes = new byte[size(in, 1)];
        in.get(bytes);
        return bytes;
    }

    /** A length that the rest of the message can hold: nothing is made for another one. */
    private static int size(ByteBuffer in, int width) {
        int size = in.getInt();
        if (size < 0 || size > in.remaining() / width) throw new BufferUnderflowException();
        return size;
    }
}
