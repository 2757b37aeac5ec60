package org.quotahost.metrics;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Supplier;
import javax.management.openmbean.CompositeDataSupport;
import javax.management.openmbean.CompositeType;
import javax.management.openmbean.OpenDataException;
import javax.management.openmbean.OpenType;
import javax.management.openmbean.SimpleType;
import javax.management.openmbean.TabularData;
import javax.management.openmbean.TabularDataSupport;
import javax.management.openmbean.TabularType;

/**
 * Who uses what as JMX shows it: one table of at most metrics.clients rows, whatever the names are and however often
 * they change. An MBean for each client would come and go.
 *
 * <p>The Python host makes the rows (broker_status.py). The thread that reads the table asks for them, after PERIOD_NANOS at
 * the earliest, and so that asking takes a fiftieth of the time at most. While the host doesn't answer it is empty.
 */
public final class ClientTable {
    private static final long PERIOD_NANOS = 5_000_000_000L;
    private static final int MOST_OFTEN = 50;
    private static final String[] KEY = {"user", "client_id", "scope", "type"};
    private static final String[] COLUMNS =
            {"user", "client_id", "scope", "type", "Rate", "Quota", "Limit", "Share", "DelayMs", "Bound"};
    private static final OpenType<?>[] TYPES = new OpenType<?>[COLUMNS.length];
    private static final TabularType TYPE;

    static {
        Arrays.fill(TYPES, SimpleType.STRING);
        Arrays.fill(TYPES, KEY.length, COLUMNS.length - 1, SimpleType.DOUBLE);
        try {
            var row = new CompositeType("ClientUse", "what one client, or all who share a quota, use", COLUMNS, COLUMNS, TYPES);
            TYPE = new TabularType("ClientUses", "who uses what", row, KEY);
        } catch (OpenDataException e) {
            throw new IllegalStateException(e);
        }
    }

    private final Supplier<String> rows;
    private String last = "";
    private long dueAt = System.nanoTime();

    /** @param rows a line for each row: its columns, percent-encoded, with spaces between; else null, or an error in JSON */
    public ClientTable(Supplier<String> rows) {
        this.rows = rows;
    }

    public TabularData read() {
        TabularDataSupport table = new TabularDataSupport(TYPE);
        recent().lines().map(ClientTable::row).forEach(row -> {
            // Names that differ in half a surrogate pair alone have become one.
            if (!table.containsKey(table.calculateIndex(row))) table.put(row);
        });
        return table;
    }

    private synchronized String recent() {
        long began = System.nanoTime();
        if (began - dueAt < 0) return last;
        String answer = rows.get();
        last = answer == null || answer.startsWith("{") ? "" : answer;
        long ended = System.nanoTime();
        dueAt = ended + (last.isEmpty() ? PERIOD_NANOS : Math.max(PERIOD_NANOS, MOST_OFTEN * (ended - began)));
        return last;
    }

    private static CompositeDataSupport row(String line) {
        String[] fields = line.split(" ", -1);
        Object[] values = new Object[COLUMNS.length];
        for (int i = 0; i < values.length; i++) {
            String text = URLDecoder.decode(fields[i], StandardCharsets.UTF_8);
            values[i] = TYPES[i] == SimpleType.STRING ? text : (Object) Double.valueOf(text);
        }
        try {
            return new CompositeDataSupport(TYPE.getRowType(), COLUMNS, values);
        } catch (OpenDataException e) {
            throw new IllegalStateException(e);
        }
    }
}
