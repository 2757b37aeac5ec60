package org.quotahost.metrics;

import java.util.Arrays;
import java.util.List;
import javax.management.openmbean.CompositeDataSupport;
import javax.management.openmbean.CompositeType;
import javax.management.openmbean.OpenDataException;
import javax.management.openmbean.OpenType;
import javax.management.openmbean.SimpleType;
import javax.management.openmbean.TabularData;
import javax.management.openmbean.TabularDataSupport;
import javax.management.openmbean.TabularType;

/**
 * The usage of clients in JMX: one table of at most metrics.clients rows, whatever the names are and however often they change.
 * With one MBean per client, MBeans would come and go.
 *
 * <p>The Python host makes the rows (broker_status.py) for each thread that reads the table. If it does not answer, the table
 * is empty.
 */
public final class ClientTable {
    private static final String[] KEY = {"user", "client_id", "scope", "type"};
    private static final String[] COLUMNS =
            {"user", "client_id", "scope", "type", "Rate", "Quota", "Limit", "Share", "DelayMs", "Bound"};
    private static final OpenType<?>[] TYPES = new OpenType<?>[COLUMNS.length];
    private static final TabularType TYPE;

    static {
        Arrays.fill(TYPES, SimpleType.STRING);
        Arrays.fill(TYPES, KEY.length, COLUMNS.length - 1, SimpleType.DOUBLE);
        try {
            var row = new CompositeType("ClientUse", "the use of one client, or of all clients that share a quota", COLUMNS, COLUMNS, TYPES);
            TYPE = new TabularType("ClientUses", "who uses what", row, KEY);
        } catch (OpenDataException e) {
            throw new IllegalStateException(e);
        }
    }

    private ClientTable() {}

    /** @param answer a list of rows, each a list of its columns; any other type means no answer */
    public static TabularData of(Object answer) {
        TabularDataSupport table = new TabularDataSupport(TYPE);
        if (answer instanceof List<?> rows) rows.forEach(columns -> table.put(row((List<?>) columns)));
        return table;
    }

    private static CompositeDataSupport row(List<?> columns) {
        try {
            return new CompositeDataSupport(TYPE.getRowType(), COLUMNS, columns.toArray());
        } catch (OpenDataException e) {
            throw new IllegalStateException(e);
        }
    }
}
