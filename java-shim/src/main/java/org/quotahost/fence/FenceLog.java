package org.quotahost.fence;

import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs when the fence closes and opens, up to PER_MINUTE times a minute: a volume at its hard limit may close it four
 * times a second.
 *
 * <p>The fence calls it again and again, so a state that was left out is logged as soon as a line may be written.
 */
final class FenceLog {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    static final int PER_MINUTE = 20;

    private final LineLimit lines;
    private boolean logged;

    FenceLog(LineLimit lines) {
        this.lines = lines;
    }

    /** The fence is in this state, and may have been before; for some topics only, or for all. */
    void state(boolean closed, boolean some, boolean shadow) {
        if (closed == logged || lines.pass() == LineLimit.NO) return;
        logged = closed;
        if (closed) {
            LOG.warn("The fence is closed: produce requests{} are {}", some ? " to topics on full volumes" : "", shadow ? "only counted, since the factor is in shadow"
                    : "answered with NOT_ENOUGH_REPLICAS, and nothing of them is appended");
        } else {
            LOG.info("The fence is open: produce requests go on");
        }
    }
}
