package org.quotahost.brokerlog;

/** Marks errors that no line of the broker's log is to be about: those with which the fence turns requests back. */
public interface LeftOut {}
