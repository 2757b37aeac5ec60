package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The lines that the broker's log4j2 drops, from the first closing of the fence on. */
class QuietLogTest {
    private final LoggerContext context = (LoggerContext) LogManager.getContext(false);
    private final Logger log = LogManager.getLogger("kafka.server.KafkaApis");
    private final List<String> written = new ArrayList<>();

    @BeforeEach
    void listen() {
        written.clear();
        var appender = new AbstractAppender("written", null, null, true, Property.EMPTY_ARRAY) {
            @Override
            public void append(LogEvent event) {
                written.add(event.getMessage().getFormattedMessage());
            }
        };
        appender.start();
        context.getConfiguration().getRootLogger().addAppender(appender, null, null);
        context.updateLoggers();
    }

    @AfterEach
    void forget() {
        context.getConfiguration().getRootLogger().removeAppender("written");
        context.updateLoggers();
        FenceFixture.reset();
    }

    private void logAll() {
        log.error("Unexpected error handling request", FenceClosedException.INSTANCE);
        log.error("Unexpected error handling request {}", "r", FenceClosedException.INSTANCE);
        log.error("replicas", new NotEnoughReplicasException("really"));
        log.error("no cause");
    }

    @Test
    void itDropsTheFencesErrorsAndNothingElse() {
        Fence.close();
        logAll();

        assertEquals(List.of("replicas", "no cause"), written);
    }

    @Test
    void itStaysQuietWhenTheFenceOpensForRequestsThatAreStillOnTheirWay() {
        Fence.close();
        Fence.open();
        logAll();

        assertEquals(List.of("replicas", "no cause"), written);
    }

    @Test
    void afterAReloadOfTheLogsConfigurationTheNextClosingQuietsItAgain() {
        Fence.close();
        context.reconfigure();
        listen();
        Fence.close();
        logAll();

        assertEquals(List.of("replicas", "no cause"), written);
    }

    @Test
    void itIsPutInOnceHoweverOftenTheFenceCloses() {
        Fence.close();
        var filter = context.getConfiguration().getLoggerConfig(log.getName()).getFilter();
        for (int i = 0; i < 3; i++) {
            Fence.open();
            Fence.close();
        }

        assertEquals(filter, context.getConfiguration().getLoggerConfig(log.getName()).getFilter());
    }
}
