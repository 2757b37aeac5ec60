package org.quotahost.explain;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import com.sun.tools.attach.VirtualMachineDescriptor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
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
 * Finds the JVMs of this machine in which quotahost runs, and asks one of them.
 *
 * <p>It finds them by NodeProperty, which the attach API can read; only the JVM that it asks gets a management agent,
 * for JMX. Explain alone uses it, outside of any broker.
 */
final class Brokers {
    private static final String TABLE = "quotahost:type=QuotaTable";
    private static final long SIGQUIT = 1L << 2;
    private static final String[] TWO_STRINGS = {"java.lang.String", "java.lang.String"};

    private Brokers() {}

    /** A JVM with its process id, and the node id of the broker in it; "" if quotahost does not run there. */
    record Running(String pid, String node) {}

    /**
     * The broker with a process id or a node id ("broker:N"), or with "" the only one.
     *
     * @throws ExplainException if there is none, or if there are several
     */
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

    /** A connection to the MBean QuotaTable of one broker. */
    static final class Connection implements AutoCloseable {
        private final Running broker;
        private final VirtualMachine machine;
        private final JMXConnector connector;
        private final MBeanServerConnection beans;

        /** @throws ExplainException if it cannot be attached to */
        Connection(Running broker) throws ExplainException, IOException {
            this.broker = broker;
            machine = attach(broker.pid());
            connector = JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent()));
            beans = connector.getMBeanServerConnection();
        }

        /**
         * Calls one operation, with two arguments.
         *
         * @throws ExplainException if quotahost does not run there, or in a version without this operation
         */
        String[] ask(String operation, String first, String second) throws Exception {
            try {
                return (String[]) beans.invoke(
                        new ObjectName(TABLE), operation, new Object[] {first, second}, TWO_STRINGS);
            } catch (InstanceNotFoundException e) {
                throw new ExplainException("no-quotahost", broker.pid());
            } catch (ReflectionException | MBeanException e) {
                throw new ExplainException("older", broker.pid());
            }
        }

        @Override
        public void close() throws IOException {
            try (connector) {
                machine.detach();
            }
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

    /** @param refused gets a line for each JVM that cannot be attached to */
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

    /**
     * Whether a process catches SIGQUIT. Attaching begins with that signal, which would end a process that is no JVM.
     * On other systems than Linux the JDK checks it itself.
     */
    private static boolean answersQuit(String pid) {
        Path process = Path.of("/proc", pid);
        if (!Files.isDirectory(process.resolveSibling("self"))) return true;
        try (Stream<String> status = Files.lines(process.resolve("status"))) {
            return status.filter(line -> line.startsWith("SigCgt:"))
                    .map(line -> line.substring("SigCgt:".length()).strip())
                    .anyMatch(caught -> (Long.parseUnsignedLong(caught, 16) & SIGQUIT) != 0);
        } catch (IOException | UncheckedIOException e) {
            return false;
        }
    }

    private static void detach(VirtualMachine machine) {
        try {
            machine.detach();
        } catch (IOException e) {
            // the other JVM has ended, so there is nothing to detach from
        }
    }
}
