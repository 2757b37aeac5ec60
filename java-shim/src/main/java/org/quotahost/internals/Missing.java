package org.quotahost.internals;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Says once of each thing of Kafka's that is no public API and that this Kafka lacks, what is weaker for that. */
final class Missing {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.internals");
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    private Missing() {}

    static void warn(String what, String weaker) {
        if (TOLD.add(what)) LOG.warn("This Kafka lacks {}, which is no public API of it: {}", what, weaker);
    }
}
