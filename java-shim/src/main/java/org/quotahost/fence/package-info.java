/**
 * The authorizer's part: another authorizer, and a fence before it that turns produce requests back.
 *
 * <p>Kafka makes the authorizer apart from the callback, so Fence is static. The packages root, host, table and
 * topics use it; it uses util alone, and hears of topics by an interface of its own.
 */
package org.quotahost.fence;
