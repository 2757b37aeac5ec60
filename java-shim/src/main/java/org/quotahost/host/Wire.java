package org.quotahost.host;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The reader of a call's bytes, which Python writes (quotahost.broker.host.messages). A value is one letter for its type,
 * followed by its content in big-endian order; texts, bytes, arrays and lists begin with their length.
 */
final class Wire {
    private Wire() {}

    /** Returns the value: null, Boolean, Long, Double, String, byte[], int[], double[] or List. Otherwise throws RuntimeException. */
    static Object decode(byte[] message) {
        return read(ByteBuffer.wrap(message));
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
                for (int left = in.getInt(); left > 0; left--) items.add(read(in));
                yield items;
            }
            case 'i' -> IntStream.range(0, length(in, Integer.BYTES)).map(i -> in.getInt()).toArray();
            case 'd' -> IntStream.range(0, length(in, Double.BYTES)).mapToDouble(i -> in.getDouble()).toArray();
            default -> throw new IllegalArgumentException("a message has a value of no known type");
        };
    }

    private static byte[] bytes(ByteBuffer in) {
        byte[] bytes = new byte[length(in, 1)];
        in.get(bytes);
        return bytes;
    }

    /** Returns a length that the message really has, so that a process whose memory is damaged does not fill the broker's heap. */
    private static int length(ByteBuffer in, int size) {
        int length = in.getInt();
        if (length >= 0 && length <= in.remaining() / size) return length;
        throw new IllegalArgumentException("a message has a value of " + (long) length * size + " bytes");
    }
}
