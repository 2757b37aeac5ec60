package org.quotahost.util;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.config.ConfigException;

/** Files in jars, beside a class or by their whole path; ConfigException if one is missing or can't be read. */
public final class Resources {
    private Resources() {}

    public static String text(Class<?> beside, String name) {
        try (InputStream in = beside.getResourceAsStream(name)) {
            if (in == null) throw new ConfigException("the jar's " + name + " is missing");
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new ConfigException("the jar's " + name + " cannot be read: " + e.getMessage());
        }
    }

    public static Properties properties(Class<?> beside, String name) {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text(beside, name)));
            return properties;
        } catch (IOException e) { // a text in memory has none
            throw new ConfigException("the jar's " + name + " cannot be read: " + e.getMessage());
        }
    }

    /** Of what this jar was built for: the versions of quotahost and jpype, and Kafka's tested lines. */
    public static Properties versions() {
        return properties(Resources.class, "/META-INF/quotahost/versions.properties");
    }
}
