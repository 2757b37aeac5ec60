package org.quotahost;

/** Marks the errors with which the fence turns requests back, so that QuietLog drops just these. */
interface TurnedBack {}
