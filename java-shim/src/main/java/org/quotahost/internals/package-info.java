/**
 * What quotahost uses of Kafka that is no public API. Each class says what is weaker where a Kafka lacks it.
 */
package org.quotahost.internals;
