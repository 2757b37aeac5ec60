/**
 * The Python host of a JVM: its configuration, its start and end, the lease, and the numbers that it shows.
 *
 * <p>Only the root package uses it; Python gets at everything in the jar through its class PythonHost. It puts together
 * the packages below, and none of them knows it.
 */
package org.quotahost.host;
