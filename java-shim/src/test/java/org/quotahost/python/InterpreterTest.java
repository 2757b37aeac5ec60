package org.quotahost.python;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** The code that the interpreter gets. */
class InterpreterTest {
    @Test
    void aPythonLiteralIsPlainAscii() {
        assertEquals("\"a\\U0000005c\\U00000022\\U000000fc\\U0001d11e\\U0000000a\"", Interpreter.literal("a\\\"ü𝄞\n"));
    }
}
