/**
 * Quotas of single topics ("Broker side quota (V1)"): meters, thresholds, and the thread that compares them.
 *
 * <p>The package host starts it, Python configures it through TopicQuotas, and it gives the fence the topics whose
 * requests are to be turned back.
 */
package org.quotahost.topics;
