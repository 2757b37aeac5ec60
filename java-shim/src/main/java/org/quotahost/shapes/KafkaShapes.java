package org.quotahost.shapes;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares what Kafka loads of this jar with the interfaces that this Kafka has.
 *
 * <p>What is unknown and harmless is one warning for each interface. A method that is new, has no default and that we
 * have not would fail on a request thread some day, so it stops the start.
 */
public final class KafkaShapes {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost");
    private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

    private KafkaShapes() {}

    /** Logs what is unknown, each sentence once; ConfigException if this Kafka demands what our class has not. */
    public static void require(Class<?> ours) {
        for (Comparison each : unknown(ours)) {
            if (!each.unserved().isEmpty()) throw new ConfigException(each.sentence());
            if (WARNED.add(each.sentence())) LOG.warn("{}", each.sentence());
        }
    }

    /** Nothing if the comparison itself fails: that must not keep a broker from starting. */
    private static List<Comparison> unknown(Class<?> ours) {
        try {
            return compare(KnownShapes.read(), ours);
        } catch (RuntimeException | LinkageError e) {
            LOG.warn("Kafka's interfaces could not be compared with those that quotahost knows: {}", e.toString());
            return List.of();
        }
    }

    /** What is unknown of the interfaces of Kafka's that a class of ours implements, and of the quota types. */
    static List<Comparison> compare(KnownShapes known, Class<?> ours) {
        List<Comparison> all = new ArrayList<>();
        if (known.has("ClientQuotaType")) all.add(Comparison.of(known, "ClientQuotaType", ClientQuotaType.class, null));
        for (Class<?> type = ours; type != null; type = type.getSuperclass()) {
            for (Class<?> kafkas : type.getInterfaces()) {
                String name = kafkas.getSimpleName();
                if (known.has(name)) all.add(Comparison.of(known, name, kafkas, ours));
            }
        }
        return all.stream().filter(Comparison::isUnknown).toList();
    }
}
