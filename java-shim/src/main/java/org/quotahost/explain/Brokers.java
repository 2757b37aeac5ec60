package org.quotahost.explain;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import com.sun.tools.attach.VirtualMachineDescriptor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.InstanceNotFoundException;
import javax.management.MBeanException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.ReflectionException;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.quotahost.util.NodeProperty;

/**
 * The JVMs of this machine in which quotahost runs, found by the system property that PythonHost sets there: no JVM
 * but the one asked is given a management agent. Used by Explain alone, outside of any broker.
 */
final class Brokers {
    private static final String TABLE = "quotahost:type=QuotaTable";
    private static final long SIGQUIT = 1L << 2;
    private static final String[] TWO_STRINGS = {"java.lang.String", "java.lang.String"};

    private Brokers() {}

    record Running(String pid, String node) {}

    /** The one with this process id or node id ("broker:N"), or with "" the only one. */
    static Running one(String which) throws ExplainException {
        if (!which.isEmpty() && !which.startsWith("broker:")) return byPid(which);
        List<String> refused = new ArrayList<>();
        List<Running> found = all(refused);
        if (!which.isEmpty()) found.removeIf(broker -> !broker.node().equals(which.substring("broker:".length())));
        if (found.size() == 1) return found.get(0);
        if (found.isEmpty()) throw new ExplainException("none", String.join("; ", refused));
        throw new ExplainException("several", found.stream().map(b -> "pid " + b.pid() + " (broker " + b.node() + ")")
                .collect(Collectors.joining(", ")));
    }

    /** The answers of some operations of the table, each of which takes a principal and a client-id. */
    static Map<String, String[]> ask(Running broker, List<String> operations, String principal, String clientId) throws Exception {
        VirtualMachine machine = attach(broker.pid());
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent()))) {
            MBeanServerConnection beans = connector.getMBeanServerConnection();
            Map<String, String[]> answers = new LinkedHashMap<>();
            for (String operation : operations) {
                Object told = beans.invoke(new ObjectName(TABLE), operation, new Object[] {principal, clientId}, TWO_STRINGS);
                answers.put(operation, (String[]) told);
            }
            return answers;
        } catch (InstanceNotFoundException e) {
            throw new ExplainException("no-quotahost", broker.pid());
        } catch (ReflectionException | MBeanException e) {
            throw new ExplainException("older", broker.pid());
        } finally {
            machine.detach();
        }
    }

    private static Running byPid(String pid) throws ExplainException {
        VirtualMachine machine = attach(pid);
        try {
            return new Running(pid, machine.getSystemProperties().getProperty(NodeProperty.NAME, ""));
        } catch (IOException e) {
            throw new ExplainException("refused", "pid " + pid + ": " + e.getMessage());
        } finally {
            detach(machine);
        }
    }

    private static List<Running> all(List<String> refused) {
        List<Running> found = new ArrayList<>();
        String self = String.valueOf(ProcessHandle.current().pid());
        for (VirtualMachineDescriptor each : VirtualMachine.list()) {
            if (each.id().equals(self)) continue;
            try {
                Running broker = byPid(each.id());
                if (!broker.node().isEmpty()) found.add(broker);
            } catch (ExplainException e) {
                if (e.kind().equals("refused")) refused.add(e.getMessage());
            }
        }
        return found;
    }

    private static VirtualMachine attach(String pid) throws ExplainException {
        if (!answersQuit(pid)) throw new ExplainException("no-jvm", pid);
        try {
            return VirtualMachine.attach(pid);
        } catch (AttachNotSupportedException | IOException e) {
            throw new ExplainException("refused", "pid " + pid + ": " + e.getMessage());
        }
    }

    /** Attaching begins with a SIGQUIT, which ends a process that doesn't catch it. Elsewhere than on Linux the JDK looks. */
    private static boolean answersQuit(String pid) {
        Path process = Path.of("/proc", pid);
        if (!Files.isDirectory(process.resolveSibling("self"))) return true;
        try (Stream<String> status = Files.lines(process.resolve("status"))) {
            return status.filter(line -> line.startsWith("SigCgt:")).map(line -> line.substring("SigCgt:".length()).strip())
                    .anyMatch(caught -> (Long.parseUnsignedLong(caught, 16) & SIGQUIT) != 0);
        } catch (IOException | UncheckedIOException e) {
            return false;
        }
    }

    private static void detach(VirtualMachine machine) {
        try {
            machine.detach();
        } catch (IOException e) {
            // the other JVM has ended, and nothing is left to give back
        }
    }
}
