import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Copies the topic "in" to "copy", and counts its numbers by their last digit in "counts", through a repartition topic
 * and a store with a changelog. Ends with Kafka Streams. Argument: a file of its properties. Run from its source.
 */
public final class CountingStream {
    private CountingStream() { }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(args[0]))) {
            properties.load(file);
        }
        properties.put("default.key.serde", Serdes.String().getClass().getName());
        properties.put("default.value.serde", Serdes.String().getClass().getName());
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> numbers = builder.stream("in");
        numbers.to("copy");
        numbers.selectKey((key, number) -> number.substring(number.length() - 1)).groupByKey()
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("store")))
                .toStream().mapValues(String::valueOf).to("counts");
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.start();
        while (!streams.state().hasCompletedShutdown()) Thread.sleep(200);
        System.exit(1);
    }
}
