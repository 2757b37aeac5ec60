package org.quotahost.fence;

import org.quotahost.brokerlog.LeftOut;

/**
 * Marks the errors with which the fence turns requests back, so that the broker's log contains none of them (BrokerLog).
 */
public interface FenceError extends LeftOut {}
