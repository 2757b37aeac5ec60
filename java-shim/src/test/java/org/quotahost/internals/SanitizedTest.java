package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.function.Predicate;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.utils.Sanitizer;
import org.quotahost.util.Json;
import org.quotahost.util.Names;

/** Tests that our names in metric tags and MBeans equal those of Kafka's Sanitizer. */
class SanitizedTest {
    @Property
    void namesAreThoseOfKafka(@ForAll String name) {
        String text = name + "*+ a=b:\"?\\";
        assertEquals(Sanitizer.sanitize(name), Names.tag(name));
        assertEquals(Sanitizer.sanitize(text), Names.tag(text));
        assertEquals(Sanitizer.jmxSanitize(name), KafkaBeans.sanitized(name));
        assertEquals(Sanitizer.jmxSanitize(text), KafkaBeans.sanitized(text));
    }

    @Example
    void aClientIdIsKeptIfKafkaShowsItsMBeans() {
        Predicate<String> shown = JmxReporter.compilePredicate(Map.of());
        for (char c = 0; c < Character.MAX_VALUE; c++) {
            String clientId = "a" + c + "b";
            assertEquals(shown.test("client-id=" + KafkaBeans.sanitized(clientId)), Names.keeps(clientId),
                    () -> Json.text(clientId));
        }
    }
}
