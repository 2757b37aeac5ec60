package harness;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.util.HashMap;
import java.util.Map;

/** Writes JSON for Python's json module, and reads that module's output. */
final class Json {

    /** Leaves NaN and Infinity unquoted, and escapes all characters beyond ASCII, so that no encoding matters. */
    static final ObjectMapper MAPPER = JsonMapper.builder()
        .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
        .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
        .build();

    private Json() { }

    /** The properties of a client. */
    static Map<String, Object> config(JsonNode properties) {
        Map<String, Object> config = new HashMap<>();
        properties.fields().forEachRemaining(each -> config.put(each.getKey(), each.getValue().asText()));
        return config;
    }
}
