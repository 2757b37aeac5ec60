package harness;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A JVM that stays up and does for the tests what only Java can do. It reads one JSON request per line from stdin and writes
 * one JSON answer per line to stdout. It ends when stdin ends, and so with the process that started it.
 */
public final class Helper {

    /** The action for one kind of request; the arguments are those of the request. */
    @FunctionalInterface
    interface Command {
        Object run(JsonNode args) throws Exception;
    }

    private static final Map<String, Command> COMMANDS = Map.ofEntries(
        Map.entry("format", KafkaTools::format),
        Map.entry("tool", KafkaTools::run),
        Map.entry("alter-quotas", AdminTool::alterQuotas),
        Map.entry("describe-quotas", AdminTool::describeQuotas),
        Map.entry("alter-configs", AdminTool::alterConfigs),
        Map.entry("unregister", AdminTool::unregister),
        Map.entry("reassign", AdminTool::reassign),
        Map.entry("mutate", Mutations::run),
        Map.entry("produce", NumberedProducer::run),
        Map.entry("produce-mixed", MixedProducer::run),
        Map.entry("throttled-producer", ThrottleTimes::produce),
        Map.entry("throttled-consumer", ThrottleTimes::consume),
        Map.entry("read-shared", ShareReader::run),
        Map.entry("measure-shared", ShareReader::measure),
        Map.entry("jmx-get", Jmx::get),
        Map.entry("jmx-query", Jmx::query));

    private Helper() { }

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        System.setOut(KafkaTools.OUT);  // before Scala's Console keeps the original one
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(Json.MAPPER.writeValueAsString(answer(Json.MAPPER.readTree(line))));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            Command command = COMMANDS.get(request.get("command").textValue());
            answer.put("result", command.run(request.get("args")));
        } catch (Exception | LinkageError e) {
            answer.put("error", describe(e));
        }
        return answer;
    }

    /** Returns class and message of every exception down to the first cause, because wrappers often have no message. */
    private static String describe(Throwable error) {
        String own = error.getClass().getSimpleName() + ": " + error.getMessage();
        return error.getCause() == null ? own : own + "; caused by " + describe(error.getCause());
    }
}
