package org.quotahost.fence;

/**
 * Marks the errors with which the fence turns requests back, so that QuietLog drops these from the log and no others.
 */
public interface FenceError {}
