package org.quotahost.table;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import org.quotahost.util.Escape;

/**
 * What the clients of one scope use of one quota type, as operators see it: one client, or several that share a quota.
 *
 * @param who whose scope it is
 * @param quota its state in the table
 * @param now what Kafka measures for it
 * @param idleMs for how long Kafka has not asked for it
 * @param shadow the rule in shadow that would hold it back, as the property shadow names it; "" for none
 */
record ClientUse(Who who, Description quota, KafkaRates.Reading now, long idleMs, String shadow) {
    /**
     * A scope in words.
     *
     * @param user the principal's name; "" if the scope is not that of one user
     * @param clientId "" if the scope is not that of one client-id
     * @param scope who shares the quota: client, user, client-id, broker, group NAME, newcomers, newcomers of the user,
     *     unlimited, exempt
     */
    record Who(String user, String clientId, String scope) {
        private static final String GROUP = "<group ";
        private static final String NEWCOMERS = "<newcomers ";

        /** Of the names that Scopes gives. */
        static Who of(Tags tags) {
            String user = tags.user;
            if (user.startsWith(GROUP)) return new Who("", "", "group " + inner(user, GROUP));
            if (user.startsWith(NEWCOMERS)) return new Who(inner(user, NEWCOMERS), "", "newcomers of the user");
            if (user.startsWith("<")) return new Who("", "", user.substring(1, user.length() - 1));
            if (user.isEmpty()) return new Who("", tags.clientId, "client-id");
            return new Who(plain(user), tags.clientId, tags.clientId.isEmpty() ? "user" : "client");
        }

        private static String inner(String user, String begin) {
            return plain(user.substring(begin.length(), user.length() - 1));
        }

        private static String plain(String tag) {
            return URLDecoder.decode(tag, StandardCharsets.UTF_8);
        }

        boolean isOneClient() {
            return scope.equals("client");
        }
    }

    /** The quota type. */
    String type() {
        return quota.type().name();
    }

    /** In the type's unit; 0 if Kafka measures nothing. */
    double rate() {
        return Double.isNaN(now.rate()) ? 0 : now.rate();
    }

    /** The base rate in the type's unit; NaN for unlimited. */
    double base() {
        return quota.base();
    }

    /** What Kafka is given now; NaN for unlimited. */
    double limit() {
        return quota.limit() == null ? Double.NaN : quota.limit();
    }

    /** By how many ms Kafka has delayed responses lately, 0 if it has not. */
    double delayMs() {
        return Double.isNaN(now.delayMs()) ? 0 : now.delayMs();
    }

    /** By what the clients are held back, as in Bound. */
    String bound() {
        return quota.bound(now).word();
    }

    /** Whether anything holds the clients back, or has delayed them lately. */
    boolean isHeldBack() {
        return delayMs() > 0 || quota.bound(now) != Bound.NOTHING;
    }

    String user() {
        return who.user;
    }

    String clientId() {
        return who.clientId;
    }

    String scope() {
        return who.scope;
    }

    /**
     * As a line (Escape, in ASCII): type, user, client-id, scope, rate, quota, limit, delay in ms, bound, for how many ms
     * it has been idle, and the rule in shadow that would hold it back.
     */
    String line() {
        return Escape.ascii(Escape.fields(type(), who.user, who.clientId, who.scope, rate(), base(), limit(), delayMs(),
                bound(), idleMs, shadow));
    }
}
