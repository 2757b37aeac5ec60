/**
 * What any package may use: the broker's properties as texts, escaped lines, replies to Python, a periodic thread.
 *
 * <p>It is the bottom layer and uses no other package of the jar.
 */
package org.quotahost.util;
