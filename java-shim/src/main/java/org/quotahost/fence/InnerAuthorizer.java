package org.quotahost.fence;

import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Authorizer;
import org.quotahost.util.BrokerConfigs;

/**
 * Makes the authorizer behind the fence, which client.quota.callback.fence.authorizer names: "none", or a class.
 *
 * <p>Without the property it is Kafka's StandardAuthorizer, which denies what no ACL allows: an operator who forgets
 * the property opens no cluster.
 */
public final class InnerAuthorizer {
    public static final String PROPERTY = BrokerConfigs.PREFIX + "fence.authorizer";
    private static final String NONE = "none";
    private static final String REMEDY = "; leave the property out for Kafka's StandardAuthorizer, or give \"" + NONE
            + "\" if the cluster had no authorizer, or the class that was in authorizer.class.name before";

    private InnerAuthorizer() {}

    /**
     * The authorizer, which the caller has to configure.
     *
     * @throws ConfigException if the class does not exist, is no authorizer, is a fence itself, or cannot be made
     */
    public static Authorizer of(Map<String, ?> configs) {
        String name = Objects.toString(configs.get(PROPERTY), "").strip();
        if (name.isEmpty()) return new StandardAuthorizer();
        return name.equalsIgnoreCase(NONE) ? new AllowAll() : load(name);
    }

    /** For the log line that says what stands behind the fence. */
    public static String describe(Authorizer authorizer) {
        return authorizer instanceof AllowAll ? "no authorizer: everyone may do everything"
                : authorizer.getClass().getName();
    }

    private static Authorizer load(String name) {
        try {
            Class<?> found = Class.forName(name, true, loader());
            if (ForwardingAuthorizer.class.isAssignableFrom(found)) throw wrong(name, "is the fence itself");
            if (!Authorizer.class.isAssignableFrom(found)) throw wrong(name, "is no " + Authorizer.class.getName());
            return (Authorizer) found.getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | LinkageError e) {
            throw wrong(name, "can't be loaded (" + (e.getCause() == null ? e : e.getCause()) + ")");
        }
    }

    private static ClassLoader loader() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return context != null ? context : InnerAuthorizer.class.getClassLoader();
    }

    private static ConfigException wrong(String name, String what) {
        return new ConfigException(PROPERTY + "=" + name + " " + what + REMEDY);
    }
}
