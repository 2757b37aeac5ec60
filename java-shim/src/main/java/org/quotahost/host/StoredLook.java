package org.quotahost.host;

import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.quotahost.inbox.Inbox;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks the broker once after its start which of its stored properties have a name of quotahost's, and tells the host.
 *
 * <p>Kafka calls a callback when a property changes that the callback lists (DynamicBrokerConfig.needsReconfiguration),
 * and a misspelt name is none of these. So where nothing else is stored nobody would hear of it.
 */
final class StoredLook {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** The right to ask may be missing: a broker that is told so five times will not hear otherwise. */
    private static final int TRIES = 5;

    private final Inbox inbox;
    /** ClusterAdmin.stored(). */
    private final Supplier<String[]> stored;
    private int left;

    /** @param broker whether this node is a broker; a controller alone has no listener that answers */
    StoredLook(Inbox inbox, boolean broker, Supplier<String[]> stored) {
        this.inbox = inbox;
        this.stored = stored;
        left = broker ? TRIES : 0;
    }

    /** Asks, unless there was an answer. */
    void look() {
        if (left == 0) return;
        left--;
        String[] reply = stored.get();
        if (reply[0].isEmpty()) {
            left = 0;
            List<String> names = Arrays.asList(reply).subList(1, reply.length);
            if (!names.isEmpty()) inbox.postEvent("stored", names);
        } else if (left == 0) {
            LOG.info("Kafka's stored properties can't be looked at for misspelt names: {}", reply[0]);
        }
    }
}
