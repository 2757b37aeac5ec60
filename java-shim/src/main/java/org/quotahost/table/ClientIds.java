package org.quotahost.table;

import java.util.HashSet;
import java.util.Set;

/**
 * A set of client-ids that the host hands over once and refers to in many answers: those whose quota differs from
 * that of a principal's other client-ids.
 *
 * <p>A client-id that is longer than Names.LONGEST_CLIENT_ID is left out, since the table never knows one.
 */
public final class ClientIds {
    static final ClientIds NONE = new ClientIds(new String[0]);

    private final Set<String> names = new HashSet<>();

    public ClientIds(String[] clientIds) {
        for (String each : clientIds) if (Names.keeps(each)) names.add(each);
    }

    /** Any length of a name may come, so the length is looked at before the whole name would be hashed. */
    boolean contains(String clientId) {
        return !names.isEmpty() && Names.keeps(clientId) && names.contains(clientId);
    }

    boolean isEmpty() {
        return names.isEmpty();
    }

    boolean isSame(ClientIds other) {
        return this == other || names.equals(other.names);
    }
}
