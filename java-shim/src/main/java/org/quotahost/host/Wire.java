package org.quotahost.host;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Reads the bytes of a call, as Python makes them (quotahost.broker.host.messages). A value is one letter for its type and
 * then, big-endian, its content; texts, bytes, arrays and lists begin with their length.
 */
final class Wire {
    private Wire() {}

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
            case 'i' -> IntStream.range(0, size(in, Integer.BYTES)).map(i -> in.getInt()).toArray();
            case 'd' -> IntStream.range(0, size(in, Double.BYTES)).mapToDouble(i -> in.getDouble()).toArray();
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
