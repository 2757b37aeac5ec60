/**
 * The fence: an authorizer in front of another one, which turns produce requests back.
 *
 * <p>Kafka makes the authorizer apart from the callback, so Fence is static, and so is Exemptions, which knows whom
 * neither the fence nor a quota holds up. The packages root, host, table and topics use this package; it uses brokerlog
 * and util. The topic quotas reach it by an interface of its own (TurnedBackTopics).
 */
package org.quotahost.fence;
