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
 * Which package may use which, and what request threads must not do.
 *
 * <p>ArchUnit reads the compiled classes. A constant that the compiler copies into its users leaves no trace there,
 * so a package that uses nothing but another one's constant is not seen.
 */
@AnalyzeClasses(packages = "org.quotahost", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    /** From the top to the bottom: each package with all the packages that it may use. */
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

    /** QuotaFence is what Kafka's own authorizer is: a ClusterMetadataAuthorizer. Kafka wouldn't load it into one that has none. */
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
