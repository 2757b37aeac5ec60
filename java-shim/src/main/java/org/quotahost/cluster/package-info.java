/**
 * This broker and its cluster as a client sees them: addresses, credentials, principals, the Admin client.
 *
 * <p>Only the package host uses it. Much of what it handles are secrets, which it never prints.
 */
package org.quotahost.cluster;
