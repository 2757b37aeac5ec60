/**
 * A program of its own: the Java half of {@code quotahost explain}, which asks a broker in another JVM.
 *
 * <p>No package uses it. It runs with nothing but this jar and a JDK, without Kafka's classes, so it may use util
 * alone.
 */
package org.quotahost.explain;
