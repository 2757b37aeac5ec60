package org.quotahost;

import static org.quotahost.BrokerListener.text;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The principals under which brokers of this cluster show up at each other's listeners, so that they can be
 * exempt. Told from this node's own configuration, as if the other nodes' were the same.
 */
final class BrokerPrincipal {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.principal");
    private static final String CURE = PythonQuotaCallback.PREFIX + "static.excluded.principal.name.list";

    private BrokerPrincipal() {}

    /** Never throws: what can't be found out is logged, without any value, which may be a secret. */
    static List<String> names(Map<String, ?> configs) {
        Set<String> names = new LinkedHashSet<>();
        try {
            for (BrokerListener listener : BrokerListener.of(configs)) names.addAll(found(listener));
            warnOfBuilder(configs, names);
        } catch (RuntimeException | LinkageError e) {
            LOG.warn("As whom brokers connect to each other can't be told ({}). List them in {}", kind(e), CURE);
        }
        return List.copyOf(names);
    }

    private static List<String> found(BrokerListener listener) {
        try {
            List<String> names = of(listener);
            if (names.isEmpty()) warn(listener, "nothing names it");
            return names;
        } catch (RuntimeException | LinkageError | GeneralSecurityException | IOException e) {
            warn(listener, kind(e));
            return List.of();
        }
    }

    private static List<String> of(BrokerListener listener) throws GeneralSecurityException, IOException {
        if (listener.protocol() == null) return List.of();
        return switch (listener.protocol()) {
            case PLAINTEXT -> List.of("ANONYMOUS");
            case SSL -> BrokerCertificate.names(listener);
            case SASL_PLAINTEXT, SASL_SSL -> BrokerLogin.names(listener);
        };
    }

    private static void warn(BrokerListener listener, String why) {
        LOG.warn("As whom brokers connect to listener {} can't be told ({}). So that they are never throttled, list them in {}",
                listener, why, CURE);
    }

    private static void warnOfBuilder(Map<String, ?> configs, Set<String> names) {
        String standard = DefaultKafkaPrincipalBuilder.class.getName();
        String builder = text(configs, "principal.builder.class", standard);
        if (!builder.equals(standard)) {
            LOG.warn("{} makes the principals; if it names the brokers otherwise than {}, list them in {}", builder, names, CURE);
        }
    }

    /** The exceptions' classes: their messages may quote what they couldn't read. */
    private static String kind(Throwable e) {
        String name = e.getClass().getSimpleName();
        return e.getCause() == null || e.getCause() == e ? name : name + " for " + kind(e.getCause());
    }
}
