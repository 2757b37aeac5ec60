/**
 * The numbers that the shim and the plugins show, as MBeans and for Prometheus.
 *
 * <p>The packages root and host use it, and Python through PluginGauges. It uses no other package of the jar.
 */
package org.quotahost.metrics;
