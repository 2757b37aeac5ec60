package org.quotahost.internals;

import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Who asks the callback to validate new properties: an administrator's request, or Kafka as it applies what is stored.
 *
 * <p>Kafka makes the same call for both (DynamicBrokerConfig.processReconfiguration in 4.0 to 4.3). A request comes on
 * a request handler's thread: KafkaApis, ConfigAdminManager, DynamicBrokerConfig.validate. Kafka applies on the
 * metadata loader's thread, at the start and on every node: DynamicConfigPublisher, BrokerConfigHandler,
 * DynamicBrokerConfig.updateBrokerConfig or updateDefaultConfig. An exception, or a long wait, there costs all dynamic
 * configs of that resource, Kafka's own too. So whatever this class doesn't recognise counts as applying.
 */
public final class Caller {
    private static final Set<String> OF_A_REQUEST = Set.of("ConfigAdminManager", "KafkaRequestHandler");
    private static final Set<String> APPLYING = Set.of("DynamicConfigPublisher", "BrokerConfigHandler", "MetadataLoader");

    private Caller() {}

    static boolean ofKafka() throws ClassNotFoundException {
        // One of a request and one that applies, where they are in 4.0 to 4.4.
        Class.forName("kafka.server.ConfigAdminManager", false, Caller.class.getClassLoader());
        Class.forName("kafka.server.metadata.DynamicConfigPublisher", false, Caller.class.getClassLoader());
        return true;
    }

    /** Such a request may be refused, and may wait. */
    public static boolean isAdministrator() {
        return Internals.CALLER.get() != null
                && StackWalker.getInstance().walk(frames -> isAdministrator(frames.map(StackWalker.StackFrame::getClassName)));
    }

    /** The same for the names of the classes on a stack; a class may move to another package. */
    static boolean isAdministrator(Stream<String> classNames) {
        Set<String> names = classNames.map(Caller::simple).collect(Collectors.toSet());
        return OF_A_REQUEST.stream().anyMatch(names::contains) && APPLYING.stream().noneMatch(names::contains);
    }

    private static String simple(String className) {
        // What follows a '$' is a lambda, or Scala's companion object.
        return className.substring(className.lastIndexOf('.') + 1).replaceFirst("(?<=.)\\$.*", "");
    }
}
