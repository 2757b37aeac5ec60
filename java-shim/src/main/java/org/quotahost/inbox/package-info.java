/**
 * What the host has to do next: unknown clients, Kafka's client quotas, cluster changes and other events.
 *
 * <p>The root package and the quota table put into it, and the host takes from it in batches. It uses no other package
 * of the jar.
 */
package org.quotahost.inbox;
