/**
 * The inbox: unknown clients, Kafka's client quotas and all other events, until the host takes them.
 *
 * <p>The root package and the quota table post to it, and the host takes from it in batches. It uses no other package
 * of the jar.
 */
package org.quotahost.inbox;
