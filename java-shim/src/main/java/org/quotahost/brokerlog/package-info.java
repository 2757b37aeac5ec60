/**
 * Keeps lines out of the broker's own log that Kafka would write again and again because of quotahost, and writes
 * fewer in their place.
 *
 * <p>Three kinds: an error with a stack trace for each request that the fence turns back, a line for each sensor whose
 * limit changes, and an error for each change of metadata while a broker is down (KAFKA-20746). Log4jFilter alone knows log4j2. The packages root, host and fence use this one; it uses util.
 */
package org.quotahost.brokerlog;
