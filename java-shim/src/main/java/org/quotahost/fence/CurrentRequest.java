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
 * The produce request that this request thread handles: how large it is.
 *
 * <p>An authorizer isn't told. But Kafka keeps each thread's request in a ThreadLocal of KafkaRequestHandler (for its
 * asynchronous callbacks), and Scala has made the accessor public. It is no public API: where it is missing, sizes are
 * not known, which the log says once. Kafka 4.0 to 4.3 have it.
 */
final class CurrentRequest {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    static final long UNKNOWN = -1;
    private static final CurrentRequest KAFKAS = ofKafka();

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
            Class<?> request = Class.forName("kafka.network.RequestChannel$Request", false, loader);
            Object module = handler.getField("MODULE$").get(null);
            String accessor = "kafka$server$KafkaRequestHandler$$threadCurrentRequest";
            return new CurrentRequest((ThreadLocal<?>) handler.getMethod(accessor).invoke(module), request);
        } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
            LOG.warn("The sizes of requests that are turned back are not known in this Kafka, so RejectedBytes stays 0: {}",
                    e.toString());
            return null;
        }
    }

    private static MethodHandle generic(Method method, Class<?> result) throws IllegalAccessException {
        return MethodHandles.publicLookup().unreflect(method).asType(MethodType.methodType(result, Object.class));
    }

    /** Looks once whether this Kafka tells, so that no request thread has to; to be called at the start. */
    static void prepare() {}

    /** The bytes of the whole request, as Kafka's produce quota counts them; UNKNOWN if this Kafka doesn't tell. */
    static long bytes() {
        try {
            Object request = KAFKAS == null ? null : KAFKAS.current.get();
            return request == null ? UNKNOWN : (int) KAFKAS.size.invokeExact(request);
        } catch (Throwable e) {
            return UNKNOWN;
        }
    }

    /** What the request has for each topic; empty if this Kafka doesn't tell. */
    static Collection<TopicProduceData> topics() {
        try {
            Object request = KAFKAS == null ? null : KAFKAS.current.get();
            if (request == null) return List.of();
            AbstractRequest body = (AbstractRequest) KAFKAS.body.invokeExact(request);
            return body instanceof ProduceRequest produce ? produce.data().topicData() : List.of();
        } catch (Throwable e) {
            return List.of();
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
            Object records = (Object) KAFKAS.records.invokeExact((Object) partition);
            return records == null ? 0 : (int) KAFKAS.bytesOfRecords.invokeExact(records);
        } catch (Throwable e) {
            return 0;
        }
    }
}
