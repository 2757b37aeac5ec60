package org.quotahost.table;

/**
 * The tags of those in a scope who are slowed, while a factor is for some clients only; the others keep the scope's own.
 *
 * <p>So in a scope that several clients share, those who write to affected topics neither hide behind the others nor slow
 * them. Kafka measures both apart. A twin has nothing but a name: its limits are kept with the scope's tags (Tags), so a
 * request thread can make one without the table's lock.
 */
final class Twin extends TagPair {
    private static final String BEGIN = "<slowed";

    final Tags own;
    /** The beat at which a client had it last. */
    private int seen;

    Twin(Tags own) {
        super(user(own.user), own.clientId);
        this.own = own;
    }

    /**
     * The twin's user tag. Sanitizing replaces '<' and ' ', so no real user gets one, and a scope's own name in brackets
     * stays in brackets.
     */
    static String user(String own) {
        return own.isEmpty() ? BEGIN + ">" : BEGIN + " " + own + ">";
    }

    /** The user tag of the scope that a twin's user tag belongs to; null for another user tag. */
    static String ownUser(String user) {
        if (user == null || !user.startsWith(BEGIN)) return null;
        return user.length() == BEGIN.length() + 1 ? "" : user.substring(BEGIN.length() + 1, user.length() - 1);
    }

    @Override
    Double limit(int type) {
        return own.slowedLimit(type);
    }

    void see(int beat) {
        if (seen != beat) seen = beat;
    }

    int seen() {
        return seen;
    }
}
