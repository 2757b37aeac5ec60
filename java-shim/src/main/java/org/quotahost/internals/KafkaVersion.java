package org.quotahost.internals;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Whether this jar was made for this Kafka: by its version, and by what its interfaces demand. */
final class KafkaVersion {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.internals");
    private static final Pattern LINE = Pattern.compile("(\\d+)\\.(\\d+)");
    private static boolean warned;

    private KafkaVersion() {}

    /** Logs once that quotahost was never tested with this version. */
    static synchronized void warn() {
        String sentence = warned ? null : untested(property("/kafka/kafka-version.properties", "version"),
                property("/META-INF/quotahost/versions.properties", "kafka"));
        warned = true;
        if (sentence != null) LOG.warn(sentence);
    }

    /**
     * What to say of a version of Kafka's; null if it was tested, or if nothing is known.
     *
     * @param range the oldest and the newest line that was tested, such as "4.0 4.4"
     */
    static String untested(String version, String range) {
        if (version.isEmpty() || range.isEmpty()) return null;
        String[] lines = range.split(" ");
        if (number(version) >= number(lines[0]) && number(version) <= number(lines[1])) return null;
        return "quotahost was never tested with Kafka " + version + ", only with " + lines[0] + " to " + lines[1];
    }

    private static int number(String version) {
        Matcher line = LINE.matcher(version);
        return line.lookingAt() ? Integer.parseInt(line.group(1)) * 1_000 + Integer.parseInt(line.group(2)) : 0;
    }

    /** Kafka's own reader of its version has moved between 4.3 and 4.4, the resource has not. */
    private static String property(String resource, String name) {
        Properties properties = new Properties();
        Class<?> at = resource.startsWith("/kafka") ? ClientQuotaCallback.class : KafkaVersion.class;
        try (InputStream in = at.getResourceAsStream(resource)) {
            if (in != null) properties.load(in);
        } catch (IOException e) {
            return "";
        }
        return properties.getProperty(name, "");
    }

    /** The methods that Kafka's interfaces demand of a class of ours and that it doesn't have. */
    static List<String> unserved(Class<?> ours) {
        return Arrays.stream(ours.getMethods()).filter(method -> Modifier.isAbstract(method.getModifiers()))
                .map(KafkaVersion::signature).sorted().toList();
    }

    private static String signature(Method method) {
        return Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).collect(
                Collectors.joining(", ", method.getReturnType().getSimpleName() + " " + method.getName() + "(", ")"));
    }

    static String sentence(Class<?> ours, List<String> unserved) {
        return "This Kafka demands " + String.join("; ", unserved) + " of " + ours.getName()
                + ", which quotahost cannot answer; look for a quotahost that was made for this Kafka";
    }
}
