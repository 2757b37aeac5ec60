package org.quotahost.table;

/**
 * What a look-up ends at, a principal or a client: tags by quota type, and when each was last asked for.
 *
 * <p>Request threads read the tags and write the beats; the tags are written under the table's lock. All of it is in
 * fields: with arrays each look-up would read two more objects, which takes half as long again (docs/benchmarks.md).
 */
abstract class Known {
    private volatile Tags produce;
    private volatile Tags fetch;
    private volatile Tags request;
    private volatile Tags mutation;
    /** The beat of the table's clock at which Kafka asked for it last; written only when it differs. */
    private int produceSeen;
    private int fetchSeen;
    private int requestSeen;
    private int mutationSeen;

    Known(int now) {
        produceSeen = fetchSeen = requestSeen = mutationSeen = now;
    }

    /** The tags of a type, or null. */
    final Tags tags(int type) {
        return switch (type) {
            case 0 -> produce;
            case 1 -> fetch;
            case 2 -> request;
            default -> mutation;
        };
    }

    final void tags(Tags[] byType) {
        produce = byType[0];
        fetch = byType[1];
        request = byType[2];
        mutation = byType[3];
    }

    /** Notes the beat at which Kafka asks for a type. */
    final void see(int type, int beat) {
        // Not on each request: a write moves the cache line away from the other request threads.
        switch (type) {
            case 0 -> {
                if (produceSeen != beat) produceSeen = beat;
            }
            case 1 -> {
                if (fetchSeen != beat) fetchSeen = beat;
            }
            case 2 -> {
                if (requestSeen != beat) requestSeen = beat;
            }
            default -> {
                if (mutationSeen != beat) mutationSeen = beat;
            }
        }
    }

    /** The beat at which Kafka asked for a type last. */
    final int seen(int type) {
        return switch (type) {
            case 0 -> produceSeen;
            case 1 -> fetchSeen;
            case 2 -> requestSeen;
            default -> mutationSeen;
        };
    }

    /** For how many beats Kafka has not asked for it. */
    final int idle(int now) {
        int least = Integer.MAX_VALUE;
        for (int type = 0; type < Tags.TYPES; type++) least = Math.min(least, now - seen(type));
        return least;
    }
}
