package org.quotahost.util;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.config.ConfigException;

/** Files in jars, beside a class or by their whole path; ConfigException if a file is missing or cannot be read. */
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
        } catch (IOException e) { // a text in memory throws none
            throw new ConfigException("the jar's " + name + " cannot be read: " + e.getMessage());
        }
    }

    /** Returns the versions of quotahost and jpype in this jar, and the Kafka lines with which it was tested. */
    public static Properties versions() {
        return properties(Resources.class, "/META-INF/quotahost/versions.properties");
    }
}
