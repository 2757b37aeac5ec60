/**
 * Topic quotas ("Broker side quota (V1)"): Kafka's meters, thresholds, and the thread that compares the two.
 *
 * <p>The package host starts the thread, Python configures the thresholds through TopicQuotas, and the fence gets the
 * topics whose requests are to be turned back.
 */
package org.quotahost.topics;
