/**
 * This broker and its cluster as a client sees them: addresses, credentials, principals and the Admin client.
 *
 * <p>Only the package host uses it. Many of its values are secrets, which it never logs.
 */
package org.quotahost.cluster;
