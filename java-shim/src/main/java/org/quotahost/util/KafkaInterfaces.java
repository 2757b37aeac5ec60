package org.quotahost.util;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The methods of the interfaces by which Kafka uses this jar, as they are in Kafka 4.0 to 4.3.
 *
 * <p>A method that a later Kafka adds is not implemented here: a default one is Kafka's own and, in an authorizer,
 * not forwarded to the inner one; a call of an abstract one fails. So the broker's log names it at the start. A method
 * that a later Kafka takes away does no harm.
 */
public final class KafkaInterfaces {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost");

    /** By the interface's simple name: each method with the simple names of its parameters' types. */
    static final Map<String, Set<String>> KNOWN = Map.of(
            "ClientQuotaCallback", Set.of("configure(Map)", "quotaMetricTags(ClientQuotaType, KafkaPrincipal, String)",
                    "quotaLimit(ClientQuotaType, Map)", "updateQuota(ClientQuotaType, ClientQuotaEntity, double)",
                    "removeQuota(ClientQuotaType, ClientQuotaEntity)", "quotaResetRequired(ClientQuotaType)",
                    "updateClusterMetadata(Cluster)", "close()"),
            "ClusterMetadataAuthorizer", Set.of("configure(Map)", "start(AuthorizerServerInfo)",
                    "authorize(AuthorizableRequestContext, List)", "createAcls(AuthorizableRequestContext, List)",
                    "deleteAcls(AuthorizableRequestContext, List)", "acls(AclBindingFilter)", "aclCount()",
                    "authorizeByResourceType(AuthorizableRequestContext, AclOperation, ResourceType)", "close()",
                    "setAclMutator(AclMutator)", "aclMutatorOrException()", "completeInitialLoad()",
                    "completeInitialLoad(Exception)", "loadSnapshot(Map)", "addAcl(Uuid, StandardAcl)", "removeAcl(Uuid)"));

    private static final Set<Class<?>> COMPARED = ConcurrentHashMap.newKeySet();

    private KafkaInterfaces() {}

    /** Logs the methods of this interface that quotahost doesn't know; once for each interface. */
    public static void compare(Class<?> kafkas) {
        if (!COMPARED.add(kafkas)) return;
        List<String> unknown = unknown(kafkas, KNOWN.get(kafkas.getSimpleName()));
        if (unknown.isEmpty()) return;
        LOG.warn("This Kafka's {} has methods that quotahost does not know: {}. They are not forwarded, and have"
                + " Kafka's own default if there is one; look for a quotahost that was made for this Kafka",
                kafkas.getSimpleName(), String.join("; ", unknown));
    }

    static List<String> unknown(Class<?> kafkas, Set<String> known) {
        return methods(kafkas).stream().filter(method -> !known.contains(method)).sorted().toList();
    }

    static Set<String> methods(Class<?> type) {
        return Arrays.stream(type.getMethods()).filter(KafkaInterfaces::isAsked).map(KafkaInterfaces::shape)
                .collect(Collectors.toSet());
    }

    private static boolean isAsked(Method method) {
        return !java.lang.reflect.Modifier.isStatic(method.getModifiers()) && !method.isSynthetic();
    }

    private static String shape(Method method) {
        return Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName)
                .collect(Collectors.joining(", ", method.getName() + "(", ")"));
    }
}
