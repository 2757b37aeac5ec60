package org.quotahost.fence;

/** Marks the errors with which the fence turns requests back, so that QuietLog drops just these. */
public interface FenceError {}
