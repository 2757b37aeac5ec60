/**
 * One running Python host for all callbacks of a JVM: its start, its life and its end, and what it shows of itself.
 *
 * <p>Only the root package uses it; Python reaches the shim by its public class PythonHost alone. It puts together what
 * the packages below offer, and none of them knows it.
 */
package org.quotahost.host;
