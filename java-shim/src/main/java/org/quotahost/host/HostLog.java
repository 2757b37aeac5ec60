package org.quotahost.host;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes the log records of the Python host and its plugins to the broker's own log, under the same logger names. */
final class HostLog {
    private HostLog() {}

    /** @param level Python's: 10 debug, 20 info, 30 warning, 40 and above error */
    static void log(String name, int level, String message) {
        Logger log = LoggerFactory.getLogger(name);
        if (level >= 40) log.error("{}", message);
        else if (level >= 30) log.warn("{}", message);
        else if (level >= 20) log.info("{}", message);
        else log.debug("{}", message);
    }
}
