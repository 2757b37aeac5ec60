/**
 * The interpreter inside the broker's JVM: which Python it is, the native library that starts it, its shutdown.
 *
 * <p>Only the package host uses it. It knows nothing of quotas; beside util it depends on org.jpype, for the order of
 * shutdown.
 */
package org.quotahost.python;
