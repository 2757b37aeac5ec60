package org.quotahost.python;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** For which platforms there is an attach library. */
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
    void theErrorForAnyOtherPlatformNamesThoseThatThereAre(String os, String arch) {
        var error = assertThrows(StartException.class, () -> NativeLibrary.resource(os, arch, false));
        assertTrue(error.getMessage().contains(NativeLibrary.PLATFORMS));
    }
}
