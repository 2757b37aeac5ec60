package org.quotahost.util;

/**
 * The system property with the broker's node id, which marks a JVM in which quotahost runs.
 *
 * <p>The host sets it once it has started. {@code quotahost explain} reads it from outside, and so has to start a
 * management agent in the one JVM that it asks, and in no other.
 */
public final class NodeProperty {
    public static final String NAME = "quotahost.node";

    private NodeProperty() {}

    public static void set(String nodeId) {
        System.setProperty(NAME, nodeId);
    }

    public static void clear() {
        System.clearProperty(NAME);
    }
}
