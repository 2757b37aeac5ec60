/**
 * The classes that Kafka loads by name: the quota callback and the authorizer in front of the broker's own.
 *
 * <p>Operators write these names into the broker's properties, so they never change. Nothing in the jar may use this
 * package: it is the top layer, and hands every question on to the packages below.
 */
package org.quotahost;
