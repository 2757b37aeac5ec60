package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
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
}
