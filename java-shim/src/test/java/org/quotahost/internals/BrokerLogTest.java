package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.Property;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.FenceFixture;

/** Tests which lines the broker's log4j2 writes when quotahost's filter is installed. */
class BrokerLogTest {
    private static final String SCALA = "kafka.server.ClientQuotaManager";
    private static final String JAVA = "org.apache.kafka.server.quota.ClientQuotaManager";
    private static final String CHANGED = "Sensor for quota-id {} already exists. Setting quota to {} in MetricConfig";

    private final LoggerContext context = (LoggerContext) LogManager.getContext(false);
    private final Logger kafkaApis = LogManager.getLogger("kafka.server.KafkaApis");
    private final List<String> written = new ArrayList<>();

    @BeforeEach
    void listen() {
        Internals.tryAll();
        written.clear();
        var appender = new AbstractAppender("written", null, null, true, Property.EMPTY_ARRAY) {
            @Override
            public void append(LogEvent event) {
                written.add(event.getMessage().getFormattedMessage());
            }
        };
        appender.start();
        context.getConfiguration().getRootLogger().addAppender(appender, null, null);
        Configurator.setLevel("org.apache.kafka", Level.INFO);
        Configurator.setLevel("kafka", Level.INFO);
        context.updateLoggers();
    }

    @AfterEach
    void forget() {
        context.getConfiguration().getRootLogger().removeAppender("written");
        context.updateLoggers();
    }

    private void logErrors() {
        RuntimeException error = FenceFixture.error();
        kafkaApis.error("Unexpected error handling request", error);
        kafkaApis.error("Unexpected error handling request {}", "r", error);
        kafkaApis.error("Unexpected error handling request {} of {}", "r", "c", error);
        kafkaApis.error("Unexpected error handling request DESCRIBE_ACLS", new SecurityDisabledException("No Authorizer is configured."));
        kafkaApis.error("replicas", new NotEnoughReplicasException("really"));
        kafkaApis.error("no cause");
    }

    private static void kafkaReadsLimits(String logger, int sensors) {
        for (int i = 0; i < sensors; i++) LogManager.getLogger(logger).info(CHANGED, "{client-id=" + i + "}", 1000.0 * i);
    }

    /** Acts like Scala's macro: it asks whether the level is on, and then writes the finished line. */
    private static void kafkaOfScalaReadsLimits(int sensors) {
        ExtendedLogger log = LogManager.getContext(false).getLogger(SCALA);
        for (int i = 0; i < sensors; i++) {
            if (!log.isEnabled(Level.INFO, null, (String) null)) continue; // Log4jLogger.isInfoEnabled of brokers' SLF4J
            log.logIfEnabled("", Level.INFO, null, "[Quota] Sensor for quota-id {client-id=" + i + "} already exists. Setting quota to 1 in MetricConfig");
        }
    }

    @Test
    void itDropsTheFencesErrorsAndNothingElse() {
        logErrors();

        assertEquals(List.of("replicas", "no cause"), written);
    }

    @Test
    void itDropsTheValuesOfARefusedChangeOfQuotahostsProperties() {
        for (String name : List.of("client.quota.callback.plugin.mine.token", "log.retention.ms")) {
            kafkaApis.error("[ConfigAdminManager[nodeId=1]: validation of configProps {" + name + "=S3CR3T} failed", new RuntimeException());
        }

        assertEquals(1, written.size());
        assertTrue(written.get(0).contains("log.retention.ms"));
    }

    @Test
    void noLineSaysThatOneSensorsLimitHasChanged() {
        kafkaReadsLimits(JAVA, 2_000);
        kafkaOfScalaReadsLimits(2_000);

        assertEquals(List.of(), written);
    }

    /** Returns more than two parameters in the form of a broker's SLF4J. */
    private static Object[] fault(Object... parameters) {
        return parameters;
    }

    @Test
    void aFaultOfKafkasThatOnlyQuotaCallbacksMeetIsLoggedOnceAMinute() {
        context.reconfigure(); // makes a filter that has not seen such a fault yet
        listen();
        Logger faults = LogManager.getLogger("org.apache.kafka.server.fault.LoggingFaultHandler");
        String changes = "Uncaught exception while publishing dynamic topic or cluster changes from MetadataDelta up to ";
        for (int i = 0; i < 1_000; i++) {
            faults.error("Encountered {} fault: {}", fault("metadata", changes + i, new NullPointerException()));
        }
        faults.error("Encountered {} fault: {}", fault("metadata", changes, new IllegalStateException()));
        faults.error("Encountered {} fault: {}", fault("metadata", "another", new NullPointerException()));

        assertEquals(3, written.size(), "%s".formatted(written));
    }

    @Test
    void otherLinesOfTheManagersStay() {
        LogManager.getLogger(JAVA).info("Quota types enabled has been changed to {} with active quota entities: [{}]", 1, "x");
        LogManager.getLogger(JAVA).warn("Shutdown was interrupted");
        LogManager.getLogger("kafka.server.KafkaServer").info("a sensor already exists");

        assertEquals(3, written.size(), "%s".formatted(written));
    }

    @Test
    void itComesBackAfterAReloadOfTheLogsConfiguration() {
        for (int i = 0; i < 3; i++) context.reconfigure();
        listen();
        logErrors();
        kafkaReadsLimits(JAVA, 10);

        assertEquals(List.of("replicas", "no cause"), written);
    }
}
