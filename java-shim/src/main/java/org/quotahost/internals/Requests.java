package org.quotahost.internals;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.CreatePartitionsRequest;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.requests.EnvelopeRequest;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * The request that this request thread handles: its size, its records, the topics that it creates. Kafka does not pass it to an
 * authorizer. But Kafka 4.0 to 4.4 keep each thread's request in a ThreadLocal of KafkaRequestHandler (for its asynchronous
 * callbacks), and Scala makes the accessor public.
 */
public final class Requests {
    private final ThreadLocal<?> current;
    private final MethodHandle size, body;

    Requests(ThreadLocal<?> current, Class<?> request) throws ReflectiveOperationException {
        this.current = current;
        size = generic(request.getMethod("sizeInBytes"));
        body = generic(request.getMethod("loggableRequest"));
        ProduceRequest.class.getMethod("clearPartitionRecords");
    }

    static Requests ofKafka() throws ReflectiveOperationException {
        ClassLoader loader = Requests.class.getClassLoader();
        Class<?> handler = Class.forName("kafka.server.KafkaRequestHandler$", true, loader);
        Object module = handler.getField("MODULE$").get(null);
        String accessor = "kafka$server$KafkaRequestHandler$$threadCurrentRequest";
        return new Requests((ThreadLocal<?>) handler.getMethod(accessor).invoke(module), requestClass(loader));
    }

    /** Kafka 4.4 has this class in another package than earlier versions. */
    private static Class<?> requestClass(ClassLoader loader) throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.network.Request", false, loader);
        } catch (ClassNotFoundException e) {
            return Class.forName("kafka.network.RequestChannel$Request", false, loader);
        }
    }

    private static MethodHandle generic(Method method) throws IllegalAccessException {
        return MethodHandles.publicLookup().unreflect(method).asType(MethodType.methodType(Object.class, Object.class));
    }

    /** Returns what a method of this thread's request returns; null if this Kafka does not show the request. */
    private static Object ask(Function<Requests, MethodHandle> method) {
        Requests kafkas = Internals.REQUESTS.get();
        try {
            Object request = kafkas == null ? null : kafkas.current.get();
            return request == null ? null : (Object) method.apply(kafkas).invokeExact(request);
        } catch (Throwable e) {
            Internals.REQUESTS.failed(e);
            return null;
        }
    }

    /**
     * Returns whether this thread handles a request. If Kafka validates new properties on such a thread, an administrator has
     * sent them: Kafka applies stored properties on other threads. False if this Kafka does not show its requests.
     */
    public static boolean isHandled() {
        return ask(kafkas -> kafkas.size) != null;
    }

    /** Returns the bytes of the whole request, as Kafka's produce quota counts them; 0 if this Kafka does not show the request. */
    public static long bytes() {
        return ask(kafkas -> kafkas.size) instanceof Integer bytes ? bytes : 0;
    }

    /** Returns the request itself, which may be an envelope around a client's request. */
    private static AbstractRequest body() {
        return (AbstractRequest) ask(kafkas -> kafkas.body);
    }

    // ---- produce requests ------------------------------------------------------------------------------------

    /** Returns the bytes of the record batches, as Kafka's BytesInPerSec counts them; 0 if this Kafka does not show them. */
    public static long recordBytes() {
        if (!(body() instanceof ProduceRequest produce)) return 0;
        return produce.data().topicData().stream().mapToLong(Requests::bytes).sum();
    }

    /**
     * Drops the request's records, as Kafka does after the append, and returns whether they are gone; the answer does not need
     * them. Kafka keeps a request while its connection is muted, and many requests with records would fill the heap.
     */
    public static boolean release() {
        if (!(body() instanceof ProduceRequest produce)) return false;
        produce.clearPartitionRecords();
        return true;
    }

    private static long bytes(TopicProduceData topic) {
        try {
            // Kafka sends only records without a copy. Their class moved between Kafka 4.0 and 4.3. The lowest version is the
            // same in all of these Kafkas: the compiler copies its number into this class.
            MessageSizeAccumulator sizes = new MessageSizeAccumulator();
            ObjectSerializationCache texts = new ObjectSerializationCache();
            for (PartitionProduceData each : topic.partitionData()) {
                each.addSize(sizes, texts, PartitionProduceData.LOWEST_SUPPORTED_VERSION);
            }
            return sizes.totalSize() - sizes.sizeExcludingZeroCopy();
        } catch (RuntimeException | LinkageError e) {
            Internals.REQUESTS.failed(e);
            return 0;
        }
    }

    /** Returns the connection of a request. */
    public static String connection(AuthorizableRequestContext context) {
        return ((RequestContext) context).connectionId;
    }

    public static boolean isTopicName(String name) {
        return Topic.isValid(name);
    }

    /** Returns the exception that makes Kafka answer with the error of that name in its protocol. */
    public static RuntimeException error(String name, String message) {
        return Errors.valueOf(name).exception(message);
    }

    // ---- requests that create topics or partitions -----------------------------------------------------------

    /** Returns whether a request only validates, or creates only internal topics and these topics; false if that is not known. */
    public static boolean createsOnly(AuthorizableRequestContext context, Predicate<String> these) {
        try {
            Predicate<String> internal = Topic::isInternal, only = internal.or(these);
            AbstractRequest body = body();
            // A broker forwards its clients' requests in an envelope.
            if (body instanceof EnvelopeRequest envelope) body = forwarded(envelope, context);
            if (body instanceof CreateTopicsRequest request) {
                var asked = request.data();
                return asked.validateOnly() || asked.topics().stream().allMatch(topic -> only.test(topic.name()));
            }
            if (body instanceof CreatePartitionsRequest request) {
                var asked = request.data();
                return asked.validateOnly() || asked.topics().stream().allMatch(topic -> only.test(topic.name()));
            }
        } catch (RuntimeException | LinkageError e) {
            Internals.REQUESTS.failed(e);
        }
        return false;
    }

    /** Parses the request in an envelope again, since Kafka keeps its own parsed request private (EnvelopeUtils). */
    private static AbstractRequest forwarded(EnvelopeRequest envelope, AuthorizableRequestContext context) {
        ByteBuffer data = envelope.requestData().duplicate();
        RequestHeader.parse(data);
        return ((RequestContext) context).parseRequest(data).request;
    }
}
