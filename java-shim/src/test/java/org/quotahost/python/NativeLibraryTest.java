package org.quotahost.python;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.quotahost.inbox.ClientQuotas;

class NativeLibraryTest {
    @ParameterizedTest
    @CsvSource({
        "Linux,amd64,false", "Linux,amd64,true", "Linux,aarch64,false", "Linux,aarch64,true",
        "Mac OS X,x86_64,false", "Mac OS X,aarch64,false",
    })
    void thereIsALibraryForEveryPlatformThatIsPromised(String os, String arch, boolean musl) {
        assertNotNull(NativeLibrary.class.getResource(NativeLibrary.resource(os, arch, musl)));
    }

    @ParameterizedTest
    @CsvSource({"Windows 11,amd64", "Linux,riscv64"})
    void anyOtherIsToldWhatThereIs(String os, String arch) {
        var error = assertThrows(StartException.class, () -> NativeLibrary.resource(os, arch, false));
        assertTrue(error.getMessage().contains(NativeLibrary.PLATFORMS));
    }

    @Test
    void aPythonLiteralIsPlainAscii() {
        assertEquals("\"a\\U0000005c\\U00000022\\U000000fc\\U0001d11e\\U0000000a\"", Interpreter.literal("a\\\"ü𝄞\n"));
    }

    @Test
    void aUserNamedLikeTheDefaultIsNotTheDefault() {
        ConfigEntity named = entity(ConfigEntityType.USER);
        ConfigEntity standard = entity(ConfigEntityType.DEFAULT_USER);
        assertEquals("name", ClientQuotas.Key.of(ClientQuotaType.PRODUCE, of(named)).userKind());
        assertEquals("default", ClientQuotas.Key.of(ClientQuotaType.PRODUCE, of(standard)).userKind());
    }

    private static ClientQuotaEntity of(ConfigEntity part) {
        return () -> java.util.List.of(part);
    }

    private static ConfigEntity entity(ConfigEntityType type) {
        return new ConfigEntity() {
            @Override
            public String name() {
                return "<default>";
            }

            @Override
            public ConfigEntityType entityType() {
                return type;
            }
        };
    }
}
