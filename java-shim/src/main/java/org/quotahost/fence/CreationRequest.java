package org.quotahost.fence;

import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.CreatePartitionsRequest;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.requests.EnvelopeRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * What the request that this thread handles is to create. An authorizer isn't told; CurrentRequest knows.
 *
 * @param topics the names of all of its topics
 * @param validateOnly it only asks whether they could be created
 */
record CreationRequest(List<String> topics, boolean validateOnly) {
    /** Null if this Kafka doesn't tell, or if it is another request. */
    static CreationRequest of(AuthorizableRequestContext context) {
        try {
            AbstractRequest body = CurrentRequest.body();
            // A broker forwards its clients' requests in an envelope.
            return body instanceof EnvelopeRequest envelope ? of(forwarded(envelope, context)) : of(body);
        } catch (RuntimeException | LinkageError e) {
            return null;
        }
    }

    /** Kafka has parsed it, too, but keeps that for itself (EnvelopeUtils). */
    private static AbstractRequest forwarded(EnvelopeRequest envelope, AuthorizableRequestContext context) {
        ByteBuffer data = envelope.requestData().duplicate();
        RequestHeader.parse(data);
        return ((RequestContext) context).parseRequest(data).request;
    }

    private static CreationRequest of(AbstractRequest body) {
        if (body instanceof CreateTopicsRequest request) {
            CreateTopicsRequestData data = request.data();
            return new CreationRequest(data.topics().stream().map(topic -> topic.name()).toList(), data.validateOnly());
        }
        if (body instanceof CreatePartitionsRequest request) {
            CreatePartitionsRequestData data = request.data();
            return new CreationRequest(data.topics().stream().map(topic -> topic.name()).toList(), data.validateOnly());
        }
        return null;
    }
}
