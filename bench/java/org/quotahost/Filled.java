package org.quotahost;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.table.Answer;
import org.quotahost.table.QuotaTable;

/** A quota table with clients, and quotahost's callback on this table, without a host. */
public final class Filled {
    static final String CLIENT_ID = "client";
    static final int CLIENTS = 1_000;
    private static final int TYPES = ClientQuotaType.values().length;

    private Filled() {}

    /** A thread's order of clients. */
    @State(Scope.Thread)
    public static class Turn {
        int at;

        int next() {
            at = at + 1 < CLIENTS ? at + 1 : 0;
            return at;
        }
    }

    static KafkaPrincipal[] principals(int count) {
        KafkaPrincipal[] all = new KafkaPrincipal[count];
        for (int i = 0; i < count; i++) all[i] = new KafkaPrincipal("User", "user-" + i);
        return all;
    }

    /** Returns a table that knows the client CLIENT_ID of each principal; the scope is one of QuotaTable.publish's codes. */
    static QuotaTable table(KafkaPrincipal[] principals, int scope) {
        QuotaTable table = new QuotaTable(new Inbox());
        double[] rates = new double[TYPES];
        Answer.Quota[] quotas = new Answer.Quota[TYPES];
        Arrays.fill(rates, 1e6);
        Arrays.fill(quotas, new Answer.Quota(scope, 1e6, "", "static"));
        table.configure(4 * principals.length, 3_600, 35_000, new String[] {"PRODUCE"}, rates, new String[] {"PRODUCE"});
        List<Batch.Lookup> lookups = new ArrayList<>();
        for (KafkaPrincipal p : principals) lookups.add(new Batch.Lookup(p.getName(), CLIENT_ID, 1));
        Answer answer = new Answer(quotas, true, Set.of(), "");
        table.publish(new Batch(lookups, List.of()), new int[principals.length], List.of(answer));
        return table;
    }

    static PythonQuotaCallback callback(QuotaTable table) throws ReflectiveOperationException {
        PythonQuotaCallback made = new PythonQuotaCallback();
        Field field = PythonQuotaCallback.class.getDeclaredField("table");
        field.setAccessible(true);
        field.set(made, table);
        return made;
    }
}
