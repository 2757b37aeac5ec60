/**
 * A program of its own: the Java end of {@code quotahost explain}, which asks a broker in another JVM.
 *
 * <p>No package uses it. It runs with nothing but this jar, without Kafka's classes, so it may use util alone.
 */
package org.quotahost.explain;
