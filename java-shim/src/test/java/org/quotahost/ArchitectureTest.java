package org.quotahost;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/**
 * The rules for packages (which may use which) and for request threads (what they must not do).
 *
 * <p>ArchUnit reads the compiled classes. The compiler copies constants into the classes that use them and leaves no trace
 * there, so ArchUnit does not see a package that uses only a constant of another one.
 */
@AnalyzeClasses(packages = "org.quotahost", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    /** Each package with all packages that it may use, from the top to the bottom. */
    @ArchTest
    static final ArchRule EVERY_PACKAGE_USES_ONLY_WHAT_LIES_BELOW = layeredArchitecture().consideringOnlyDependenciesInLayers()
            .layer("root").definedBy("org.quotahost")
            .layer("host").definedBy("org.quotahost.host")
            .layer("table").definedBy("org.quotahost.table")
            .layer("topics").definedBy("org.quotahost.topics")
            .layer("python").definedBy("org.quotahost.python")
            .layer("metrics").definedBy("org.quotahost.metrics")
            .layer("inbox").definedBy("org.quotahost.inbox")
            .layer("fence").definedBy("org.quotahost.fence")
            .layer("internals").definedBy("org.quotahost.internals")
            .layer("util").definedBy("org.quotahost.util")
            .whereLayer("root").mayOnlyAccessLayers("host", "table", "python", "metrics", "inbox", "fence", "internals", "util")
            .whereLayer("host").mayOnlyAccessLayers("table", "topics", "python", "metrics", "inbox", "fence", "internals",
                    "util")
            .whereLayer("table").mayOnlyAccessLayers("inbox", "fence", "internals", "util")
            .whereLayer("topics").mayOnlyAccessLayers("fence", "internals", "util")
            .whereLayer("python").mayOnlyAccessLayers("internals", "util")
            .whereLayer("fence").mayOnlyAccessLayers("internals", "util")
            .whereLayer("internals").mayOnlyAccessLayers("util")
            .whereLayer("metrics").mayNotAccessAnyLayer()
            .whereLayer("inbox").mayNotAccessAnyLayer()
            .whereLayer("util").mayNotAccessAnyLayer()
            .ensureAllClassesAreContainedInArchitecture()
            .as("every package uses only what lies below it");

    /** QuotaFence is exempt: like Kafka's authorizer, it must be a ClusterMetadataAuthorizer, or Kafka gives it no ACLs. */
    @ArchTest
    static final ArchRule WHAT_IS_NO_PUBLIC_API_IS_USED_BY_INTERNALS_ALONE = noClasses()
            .that().resideOutsideOfPackage("org.quotahost.internals").and().haveNameNotMatching("org\\.quotahost\\.QuotaFence.*")
            .should().dependOnClassesThat().resideInAnyPackage("org.apache.kafka.common.internals..", "org.apache.kafka.common.message..",
                    "org.apache.kafka.common.network..", "org.apache.kafka.common.protocol..", "org.apache.kafka.common.requests..",
                    "org.apache.kafka.common.utils..", "org.apache.kafka.metadata..", "org.apache.kafka.network..", "kafka..",
                    "com.yammer..", "org.apache.logging..", "org.jpype..");

    @ArchTest
    static final ArchRule REQUEST_THREADS_NEITHER_WAIT_NOR_LOG_NOR_DO_IO =
            methods().that(RequestPath.BEGINS_HERE).should(RequestPath.NEVER_WAIT_LOG_OR_DO_IO);
}
