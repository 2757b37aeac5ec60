package harness;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;

/** Writes JSON that Python's json module reads. */
final class Json {

    /** Leaves NaN and Infinity unquoted, and escapes everything but ASCII, so that no encoding matters. */
    static final ObjectMapper MAPPER = JsonMapper.builder()
        .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
        .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
        .build();

    private Json() { }
}
