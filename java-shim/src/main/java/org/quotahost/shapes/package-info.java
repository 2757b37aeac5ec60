/**
 * Compares the interfaces of Kafka that this jar implements with those that it knows, by version.
 *
 * <p>A resource, kafka-shapes.tsv, has what they are in each known version; tools/kafka_shapes.py writes it.
 */
package org.quotahost.shapes;
