/**
 * Which tags and which limit a client has: the quota table that request threads read without a lock.
 *
 * <p>The packages root and host use it, and Python through QuotaTable. It posts unknown clients to the inbox and tells
 * the fence when it has to close.
 */
package org.quotahost.table;
