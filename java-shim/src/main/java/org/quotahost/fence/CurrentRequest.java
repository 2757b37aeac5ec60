package org.quotahost.fence;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ProduceRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The request that this request thread handles: how large it is, and what it holds.
 *
 * <p>An authorizer isn't told. But Kafka keeps each thread's request in a ThreadLocal of KafkaRequestHandler (for its
 * asynchronous callbacks), and Scala has made the accessor public. It is no public API: where it is missing, nothing is
 * known and nobody is muted, which the log says once. Kafka 4.0 to 4.4 have it.
 */
final class CurrentRequest {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    static final long UNKNOWN = -1;
    /** Null if this Kafka doesn't tell. */
    private static volatile CurrentRequest kafkas = ofKafka();

    private final ThreadLocal<?> current;
    private final MethodHandle size;
    private final MethodHandle body;
    /** The record batches of a partition, and their bytes; the class of the former has moved between Kafka 4.0 and 4.3. */
    private final MethodHandle records;
    private final MethodHandle bytesOfRecords;

    private CurrentRequest(ThreadLocal<?> current, Class<?> request) throws ReflectiveOperationException {
        this.current = current;
        size = generic(request.getMethod("sizeInBytes"), int.class);
        body = generic(request.getMethod("loggableRequest"), AbstractRequest.class);
        Method ofPartition = PartitionProduceData.class.getMethod("records");
        records = generic(ofPartition, Object.class);
        bytesOfRecords = generic(ofPartition.getReturnType().getMethod("sizeInBytes"), int.class);
    }

    private static CurrentRequest ofKafka() {
        try {
            ClassLoader loader = CurrentRequest.class.getClassLoader();
            Class<?> handler = Class.forName("kafka.server.KafkaRequestHandler$", true, loader);
            Class<?> request = requestClass(loader);
            Object module = handler.getField("MODULE$").get(null);
            String accessor = "kafka$server$KafkaRequestHandler$$threadCurrentRequest";
            return new CurrentRequest((ThreadLocal<?>) handler.getMethod(accessor).invoke(module), request);
        } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
            LOG.warn("This Kafka does not tell how large a request is: RejectedBytes stays 0, and clients that are turned"
                    + " back and try again at once are not muted: {}", e.toString());
            return null;
        }
    }

    /** Kafka 4.4 has it at another place than those before. */
    private static Class<?> requestClass(ClassLoader loader) throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.network.Request", false, loader);
        } catch (ClassNotFoundException e) {
            return Class.forName("kafka.network.RequestChannel$Request", false, loader);
        }
    }

    private static MethodHandle generic(Method method, Class<?> result) throws IllegalAccessException {
        return MethodHandles.publicLookup().unreflect(method).asType(MethodType.methodType(result, Object.class));
    }

    /** For tests: the requests of threads, which have the two methods of Kafka's class. */
    static void of(ThreadLocal<?> current, Class<?> request) throws ReflectiveOperationException {
        kafkas = current == null ? null : new CurrentRequest(current, request);
    }

    /** Looks once whether this Kafka tells, so that no request thread has to; to be called at the start. */
    static void prepare() {}

    /** The bytes of the whole request, as Kafka's produce quota counts them; UNKNOWN if this Kafka doesn't tell. */
    static long bytes() {
        try {
            CurrentRequest now = kafkas;
            Object request = now == null ? null : now.current.get();
            return request == null ? UNKNOWN : (int) now.size.invokeExact(request);
        } catch (Throwable e) {
            return UNKNOWN;
        }
    }

    /** What the request has for each topic; empty if this Kafka doesn't tell. */
    static Collection<TopicProduceData> topics() {
        ProduceRequest produce = produce();
        return produce == null ? List.of() : produce.data().topicData();
    }

    /**
     * Lets the records go, as Kafka does once it has appended them; what is needed for the answer stays.
     *
     * <p>Kafka keeps a request for as long as its connection is muted. With its records a second of turned back requests
     * of clients that reconnect for each would fill the heap.
     *
     * @return whether they are gone
     */
    static boolean release() {
        ProduceRequest produce = produce();
        if (produce != null) produce.clearPartitionRecords();
        return produce != null;
    }

    private static ProduceRequest produce() {
        return body() instanceof ProduceRequest produce ? produce : null;
    }

    /** The request itself, which may be an envelope around a client's; null if this Kafka doesn't tell. */
    static AbstractRequest body() {
        try {
            CurrentRequest now = kafkas;
            Object request = now == null ? null : now.current.get();
            return request == null ? null : (AbstractRequest) now.body.invokeExact(request);
        } catch (Throwable e) {
            return null;
        }
    }

    /** The bytes of the record batches for one topic, as Kafka's BytesInPerSec counts them once they are appended. */
    static long records(TopicProduceData topic) {
        long bytes = 0;
        for (PartitionProduceData partition : topic.partitionData()) bytes += records(partition);
        return bytes;
    }

    private static long records(PartitionProduceData partition) {
        try {
            CurrentRequest now = kafkas;
            Object records = (Object) now.records.invokeExact((Object) partition);
            return records == null ? 0 : (int) now.bytesOfRecords.invokeExact(records);
        } catch (Throwable e) {
            return 0;
        }
    }
}
