package org.quotahost.util;

/**
 * The system property with the broker's node id, by which {@code quotahost explain} finds a JVM in which quotahost runs.
 *
 * <p>The host sets it once it has started. The program explain reads it from outside, and so does not have to start a
 * management agent in JVMs that have nothing to do with quotahost.
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
