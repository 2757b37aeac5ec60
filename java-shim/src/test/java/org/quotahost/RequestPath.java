package org.quotahost;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The methods of the jar that Kafka's request threads run: the four that Kafka calls on each request, and all that these call.
 *
 * <p>The walk follows the compiled calls; for an interface of ours it follows every implementation. It finds synchronized
 * methods but not synchronized blocks, and does not look into Kafka's and the JDK's own methods.
 */
final class RequestPath {
    private static final Set<String> CALLBACK = Set.of("quotaMetricTags", "quotaLimit", "quotaResetRequired");
    private static final Pattern FORBIDDEN = Pattern.compile("java\\.(io|net|nio\\.file|lang\\.management)\\..*|javax\\.management\\..*"
            + "|org\\.slf4j\\..*|java\\.util\\.concurrent\\.locks\\.(?!LockSupport\\.unpark).*|java\\.lang\\.Thread\\.(sleep|join)"
            + "|java\\.lang\\.Object\\.wait|java\\.util\\.concurrent\\.CompletableFuture\\.(get|join)");

    static final DescribedPredicate<JavaMember> BEGINS_HERE = DescribedPredicate.describe("Kafka calls on each request",
            method -> method.getOwner().isEquivalentTo(PythonQuotaCallback.class) && CALLBACK.contains(method.getName())
                    || method.getOwner().isEquivalentTo(QuotaFence.class) && method.getName().equals("authorize"));

    static final ArchCondition<JavaMethod> NEVER_WAIT_LOG_OR_DO_IO = new ArchCondition<>("never wait, log or do I/O") {
        @Override
        public void check(JavaMethod begin, ConditionEvents events) {
            walk(begin, begin.getFullName(), new HashSet<>(), events);
        }
    };

    private RequestPath() {}

    private static void walk(JavaCodeUnit unit, String way, Set<JavaCodeUnit> seen, ConditionEvents events) {
        if (!seen.add(unit)) return;
        if (unit.getModifiers().contains(JavaModifier.SYNCHRONIZED)) {
            events.add(SimpleConditionEvent.violated(unit, way + " is synchronized"));
        }
        for (JavaMethodCall call : unit.getMethodCallsFromSelf()) {
            String name = call.getTargetOwner().getName() + "." + call.getName();
            if (FORBIDDEN.matcher(name).matches()) events.add(SimpleConditionEvent.violated(unit, way + " calls " + name));
            targets(call).forEach(target -> walk(target, way + " > " + target.getFullName(), seen, events));
        }
    }

    /** Returns the methods of ours that a call may run: the named one, or those that implement or override it. */
    private static Stream<JavaMethod> targets(JavaMethodCall call) {
        if (!call.getTargetOwner().getPackageName().startsWith("org.quotahost")) return Stream.empty();
        String[] parameters = call.getTarget().getRawParameterTypes().stream().map(type -> type.getName()).toArray(String[]::new);
        return Stream.concat(Stream.of(call.getTargetOwner()), call.getTargetOwner().getAllSubclasses().stream())
                .map(owner -> owner.tryGetMethod(call.getName(), parameters)).flatMap(java.util.Optional::stream);
    }
}
