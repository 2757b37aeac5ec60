package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.function.Predicate;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.utils.Sanitizer;

/** Our names in metric tags and MBeans are those of Kafka's Sanitizer. */
class SanitizedTest {
    @Property
    void namesAreThoseOfKafka(@ForAll String name) {
        String text = name + "*+ a=b:\"?\\";
        assertEquals(Sanitizer.sanitize(name), Sanitized.tag(name));
        assertEquals(Sanitizer.sanitize(text), Sanitized.tag(text));
        assertEquals(Sanitizer.jmxSanitize(name), Sanitized.bean(name));
        assertEquals(Sanitizer.jmxSanitize(text), Sanitized.bean(text));
    }

    @Example
    void aClientIdIsKeptIfKafkaShowsItsMBeans() {
        Predicate<String> shown = JmxReporter.compilePredicate(Map.of());
        for (char c = 0; c < Character.MAX_VALUE; c++) {
            String clientId = "a" + c + "b";
            assertEquals(shown.test("client-id=" + Sanitized.bean(clientId)), Names.keeps(clientId), () -> Json.text(clientId));
        }
    }
}
