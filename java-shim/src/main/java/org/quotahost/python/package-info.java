/**
 * The Python interpreter in the broker's JVM: its check, the native library that starts it, and its shutdown.
 *
 * <p>The package host uses it, and the root package catches its StartException. It knows nothing of quotas; beside util
 * it needs org.jpype.
 */
package org.quotahost.python;
