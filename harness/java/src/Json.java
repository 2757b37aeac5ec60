package harness;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;

/** JSON as Python's json module reads it. */
final class Json {

    /** NaN and Infinity stand unquoted; all else than ASCII is escaped, so that no encoding matters. */
    static final ObjectMapper MAPPER = JsonMapper.builder()
        .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
        .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
        .build();

    private Json() { }
}
