package org.quotahost.table;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
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
 * <p>The table is made on the thread that reads it, from a list that is made anew after PERIOD_MS at the earliest, and so
 * that making it takes a fiftieth of the time at most.
 */
final class ClientTable {
    private static final long PERIOD_MS = 5_000;
    private static final int MOST_OFTEN = 50;
    private static final String[] KEY = {"user", "client_id", "scope", "type"};
    private static final String[] COLUMNS =
            {"user", "client_id", "scope", "type", "Rate", "Quota", "Limit", "Share", "DelayMs", "Bound"};
    private static final TabularType TYPE = type();

    private final IntFunction<List<ClientUse>> uses;
    private volatile int most;
    private List<ClientUse> last = List.of();
    private long dueMs = Long.MIN_VALUE;

    /** @param uses at most so many */
    ClientTable(IntFunction<List<ClientUse>> uses) {
        this.uses = uses;
    }

    /** Sets how many rows the table has at most (metrics.clients). */
    void most(int rows) {
        most = rows;
    }

    TabularData read() {
        TabularDataSupport table = new TabularDataSupport(TYPE);
        for (ClientUse use : recent()) {
            if (use.rate() > 0 || use.isHeldBack()) table.put(row(use));
        }
        return table;
    }

    private synchronized List<ClientUse> recent() {
        long began = now();
        if (began < dueMs) return last;
        last = most == 0 ? List.of() : uses.apply(most);
        long ended = now();
        dueMs = ended + Math.max(PERIOD_MS, MOST_OFTEN * (ended - began));
        return last;
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    private static CompositeDataSupport row(ClientUse use) {
        try {
            return new CompositeDataSupport(TYPE.getRowType(), COLUMNS, new Object[] {use.user(), use.clientId(), use.scope(),
                use.type(), use.rate(), use.base(), use.limit(), use.rate() / use.base(), use.delayMs(), use.bound()});
        } catch (OpenDataException e) {
            throw new IllegalStateException(e);
        }
    }

    private static TabularType type() {
        Map<Boolean, OpenType<?>> kinds = Map.of(true, SimpleType.STRING, false, SimpleType.DOUBLE);
        List<OpenType<?>> types = new ArrayList<>();
        for (String each : COLUMNS) types.add(kinds.get(Character.isLowerCase(each.charAt(0)) || each.equals("Bound")));
        try {
            var row = new CompositeType("ClientUse", "what one client, or all who share a quota, use", COLUMNS, COLUMNS,
                    types.toArray(new OpenType<?>[0]));
            return new TabularType("ClientUses", "who uses what", row, KEY);
        } catch (OpenDataException e) {
            throw new IllegalStateException(e);
        }
    }
}
