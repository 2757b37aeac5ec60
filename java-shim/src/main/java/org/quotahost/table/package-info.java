/**
 * The quota table: which tags and which limit each client has, for request threads that read without a lock.
 *
 * <p>The packages root and host use it, and Python through QuotaTable. It posts unknown clients to the inbox, and
 * closes the fence when the factor is 0.
 */
package org.quotahost.table;
