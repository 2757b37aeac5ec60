package org.quotahost.python;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** A program that NativeLibraryTest runs in a process of its own: it loads the attach library and prints its mode. */
public final class NativeLibraryProgram {
    private NativeLibraryProgram() {}

    public static void main(String[] args) throws Exception {
        Path file = NativeLibrary.load();
        System.out.println(mode(file));
        NativeLibrary.remove(file);
    }

    private static String mode(Path path) throws Exception {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }
}
