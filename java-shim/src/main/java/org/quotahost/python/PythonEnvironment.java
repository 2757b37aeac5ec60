package org.quotahost.python;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.quotahost.util.BrokerConfigs;

/** What the interpreter named by python.executable tells of itself (probe.py), and whether it will do. */
public record PythonEnvironment(String executable, String libpython, String version, List<String> path) {
    private static final String PROPERTY = BrokerConfigs.PREFIX + "python.executable";
    private static final long PROBE_SECONDS = 30;

    /** FenceFixture the interpreter, and refuses one that cannot work with the sentence that cures it. */
    public static PythonEnvironment of(String executable) {
        Map<String, String> told = new HashMap<>();
        List<String> path = new ArrayList<>();
        for (String line : ask(executable).split("\n")) {
            int at = line.indexOf('=');
            if (at < 0) continue;
            if (line.startsWith("path=")) path.add(line.substring(5).strip());
            else told.put(line.substring(0, at), line.substring(at + 1).strip());
        }
        check(executable, told);
        return new PythonEnvironment(told.get("executable"), told.get("libpython"), told.get("version"), path);
    }

    /** The versions this jar was built with: keys quotahost and jpype. */
    static Properties built() {
        Properties versions = new Properties();
        try (InputStream in = PythonEnvironment.class.getResourceAsStream("/META-INF/quotahost/versions.properties")) {
            if (in != null) versions.load(in);
        } catch (IOException e) {
            throw new StartException("the jar's versions.properties cannot be read: " + e.getMessage(), e);
        }
        return versions;
    }

    static void check(String executable, Map<String, String> told) {
        Properties built = built();
        String install = "; run: " + executable + " -m pip install quotahost==" + built.getProperty("quotahost");
        String version = told.getOrDefault("version", "");
        if (version.isEmpty()) throw new StartException(PROPERTY + "=" + executable + " is no Python: it answered nothing");
        if (older(version)) throw new StartException(PROPERTY + "=" + executable + " is Python " + version + "; 3.11 or newer is needed");
        if ("true".equals(told.get("free-threaded"))) {
            throw new StartException(PROPERTY + "=" + executable + " is a free-threaded build, which JPype does not support; name another");
        }
        if (told.getOrDefault("quotahost", "").isEmpty()) {
            throw new StartException(PROPERTY + "=" + executable + ": quotahost is not installed there" + install);
        }
        same(executable, "quotahost", told, built, install);
        same(executable, "jpype", told, built, install);
        if (told.getOrDefault("libpython", "").isEmpty()) {
            throw new StartException(PROPERTY + "=" + executable + " (Python " + version + ") has no shared libpython. Install it"
                    + " (Debian: apt install libpython3." + version.split("\\.")[1] + "; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared)"
                    + " or name an interpreter that has one");
        }
    }

    private static void same(String executable, String what, Map<String, String> told, Properties built, String cure) {
        String installed = told.getOrDefault(what, "");
        String needed = built.getProperty(what);
        if (!installed.equals(needed)) {
            throw new StartException(PROPERTY + "=" + executable + " has " + what + " "
                    + (installed.isEmpty() ? "not installed" : installed) + ", this jar needs " + needed + cure);
        }
    }

    private static boolean older(String version) {
        String[] parts = version.split("\\.");
        return Integer.parseInt(parts[0]) < 3 || Integer.parseInt(parts[0]) == 3 && Integer.parseInt(parts[1]) < 11;
    }

    private static String ask(String executable) {
        try (InputStream probe = PythonEnvironment.class.getResourceAsStream("probe.py")) {
            String code = new String(probe.readAllBytes(), StandardCharsets.UTF_8);
            Process process = new ProcessBuilder(executable, "-c", code).redirectErrorStream(true).start();
            process.getOutputStream().close();
            var answer = java.util.concurrent.CompletableFuture.supplyAsync(() -> read(process));
            if (!process.waitFor(PROBE_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new StartException(PROPERTY + "=" + executable + " did not answer within " + PROBE_SECONDS + " s");
            }
            if (process.exitValue() != 0) {
                throw new StartException(PROPERTY + "=" + executable + " is no working Python 3.11+: " + answer.join().strip());
            }
            return answer.join();
        } catch (IOException e) {
            throw new StartException(PROPERTY + "=" + executable + " could not be run (" + e.getMessage()
                    + "); give the full path of the interpreter that has quotahost, such as /opt/quotahost/bin/python3", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StartException(PROPERTY + "=" + executable + ": interrupted while it was asked", e);
        }
    }

    private static String read(Process process) {
        try (InputStream out = process.getInputStream()) {
            return new String(out.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
