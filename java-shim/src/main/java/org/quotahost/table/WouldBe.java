package org.quotahost.table;

import org.quotahost.util.Sanitized;

/**
 * What a supplier in shadow would give a client for one quota type, if it were in force.
 *
 * @param code the scope (Scopes)
 * @param rate base rate, NaN for unlimited
 * @param group the group's name, "" for another scope
 * @param supplier its name
 */
record WouldBe(int code, double rate, String group, String supplier) {
    /** Who would share the quota, by the two values of the metric tags that the scope would have. */
    record Scope(String user, String clientId) {}

    /**
     * The scope that a client would be in.
     *
     * @param user the client's principal, sanitized
     */
    Scope scope(String user, String clientId) {
        return switch (code) {
            case Scopes.CLIENT -> new Scope(user, clientId);
            case Scopes.USER -> new Scope(user, "");
            case Scopes.CLIENT_ID -> new Scope("", clientId);
            case Scopes.ALL -> new Scope(Scopes.BROKER, "");
            default -> new Scope("<group " + Sanitized.tag(group) + ">", "");
        };
    }

    /** Whether the scope depends on the client-id. */
    boolean isOfClientId() {
        return code == Scopes.CLIENT || code == Scopes.CLIENT_ID;
    }
}
