package org.quotahost.internals;

import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** Keystores with a key of their own, made by the JDK's keytool. */
final class KeystoreFiles {
    static final String PASSWORD = "changeit";

    private KeystoreFiles() {}

    /** Makes a keystore with a new key; its type is JKS or PKCS12. */
    static Path make(Path folder, String type, String subject) throws Exception {
        Path file = folder.resolve("keystore." + type);
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-dname", subject, "-storetype", type,
                "-keystore", file.toString(), "-storepass", PASSWORD, "-keypass", PASSWORD));
        Process keytool = new ProcessBuilder(command).redirectErrorStream(true).start();
        keytool.getOutputStream().close(); // it never waits for an answer
        String output = new String(keytool.getInputStream().readAllBytes());
        if (keytool.waitFor() != 0) throw new IllegalStateException(output);
        return file;
    }

    /** The key and the certificate of a PKCS12 store, as one PEM text each. */
    static List<String> pem(Path pkcs12) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream in = new FileInputStream(pkcs12.toFile())) {
            store.load(in, PASSWORD.toCharArray());
        }
        return List.of(block("PRIVATE KEY", store.getKey("broker", PASSWORD.toCharArray()).getEncoded()),
                block("CERTIFICATE", store.getCertificate("broker").getEncoded()));
    }

    private static String block(String what, byte[] der) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(("-----BEGIN " + what + "-----\n").getBytes());
        out.write(Base64.getMimeEncoder(64, new byte[] {'\n'}).encode(der));
        out.write(("\n-----END " + what + "-----\n").getBytes());
        return out.toString();
    }
}
