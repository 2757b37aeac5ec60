package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.CreatePartitionsRequest;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.resource.Resource;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.quotahost.QuotaFence;
import org.quotahost.internals.InternalsFixture;
import org.quotahost.util.LineLimit;
import org.quotahost.util.LogCapture;

/** Tests for which clients a controller creates topics and partitions in a PAUSE, and which error the others get. */
@ExtendWith(FenceFixture.Reset.class)
class CreationTest {
    private static final List<Action> CLUSTER =
            List.of(FenceFixture.to(AclOperation.CREATE, ResourceType.CLUSTER, Resource.CLUSTER_NAME));
    private static final List<Action> TOPIC = List.of(FenceFixture.to(AclOperation.CREATE, ResourceType.TOPIC, "t"));
    private static final List<Action> ALTER = List.of(FenceFixture.to(AclOperation.ALTER, ResourceType.TOPIC, "t"));

    private final QuotaFence fence = FenceFixture.fence("none", Map.of("super.users", "User:root"));

    @BeforeEach
    void paused() {
        Fence.state(true, true, false, null, 0);
        Fence.diskFull(true);
    }

    private RuntimeException refusal(ApiKeys key, String user, List<Action> actions) {
        return assertThrows(PolicyViolationException.class,
                () -> fence.authorize(FenceFixture.from(key, user, "app"), actions));
    }

    private void passes(ApiKeys key, String user, List<Action> actions) {
        assertEquals(List.of(AuthorizationResult.ALLOWED), fence.authorize(FenceFixture.from(key, user, "app"), actions));
    }

    @Test
    void topicsAndPartitionsAreRefusedUntilThePauseEnds() {
        refusal(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
        refusal(ApiKeys.CREATE_TOPICS, "alice", TOPIC);
        refusal(ApiKeys.CREATE_PARTITIONS, "alice", ALTER);
        Fence.state(false, false, false, null, 0);
        passes(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
        passes(ApiKeys.CREATE_PARTITIONS, "alice", ALTER);
    }

    @Test
    void aPauseThatHoldsOnlySinceSomethingIsUnknownRefusesNone() {
        Fence.diskFull(false);
        passes(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
        passes(ApiKeys.CREATE_PARTITIONS, "alice", ALTER);
    }

    @Test
    void whoPassesTheFenceMayCreateAndWhoMayNotAnywayIsToldSo() throws Exception {
        Exemptions.set(Map.of("backup", "excluded"), new String[0], "");
        passes(ApiKeys.CREATE_TOPICS, "backup", CLUSTER);
        passes(ApiKeys.CREATE_TOPICS, "root", CLUSTER);
        try (QuotaFence strict = FenceFixture.fence("", Map.of())) {
            strict.completeInitialLoad();
            assertEquals(List.of(AuthorizationResult.DENIED),
                    strict.authorize(FenceFixture.from(ApiKeys.CREATE_TOPICS, "alice", "app"), CLUSTER));
        }
    }

    private static CreateTopicsRequest topics(boolean validateOnly, String... names) {
        var data = new CreateTopicsRequestData().setValidateOnly(validateOnly);
        for (String name : names) data.topics().add(new CreatableTopic().setName(name));
        return new CreateTopicsRequest(data, ApiKeys.CREATE_TOPICS.latestVersion());
    }

    private static CreatePartitionsRequest partitions(boolean validateOnly) {
        var data = new CreatePartitionsRequestData().setValidateOnly(validateOnly);
        data.topics().add(new CreatePartitionsTopic().setName("t").setCount(3));
        return new CreatePartitionsRequest.Builder(data).build();
    }

    /** Brokers forward such a request in an envelope; broker tests cover that. */
    @Test
    void aQuestionWhetherItCouldBeCreatedPasses() {
        for (boolean only : new boolean[] {true, false}) {
            InternalsFixture.handles(topics(only, "t"));
            if (only) passes(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
            else refusal(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
            InternalsFixture.handles(partitions(only));
            if (only) passes(ApiKeys.CREATE_PARTITIONS, "alice", ALTER);
            else refusal(ApiKeys.CREATE_PARTITIONS, "alice", ALTER);
        }
    }

    @Test
    void internalAndSparedTopicsAreCreatedUnlessOthersAreToBeCreatedWithThem() {
        Exemptions.spare(new String[] {"__remote_log_metadata"});
        InternalsFixture.handles(topics(false, "__consumer_offsets", "__remote_log_metadata"));
        passes(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
        InternalsFixture.handles(topics(false, "__consumer_offsets", "t"));
        refusal(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
    }

    /** Explain shows whether creations are refused. */
    @Test
    void aBrokerThatIsNoControllerAndANodeWithoutTheFenceRefuseNothing() {
        assertTrue(Fence.refusesCreations());
        FenceFixture.reset();
        paused();
        assertFalse(Fence.refusesCreations());
        QuotaFence broker = FenceFixture.fence("none", Map.of("process.roles", "broker"));
        assertFalse(Fence.refusesCreations());
        assertDoesNotThrow(() -> broker.authorize(FenceFixture.from(ApiKeys.CREATE_TOPICS, "alice", "app"), CLUSTER));
    }

    @Test
    void aMinuteOfRefusalsIsOneLineWhichNoNameForges() {
        Fence.logRefusals();
        Fence.refusalLines = new LineLimit(1);
        String log = LogCapture.during(() -> {
            for (int i = 0; i < 3; i++) refusal(ApiKeys.CREATE_TOPICS, "al\nice", CLUSTER);
            Fence.logRefusals();
            refusal(ApiKeys.CREATE_TOPICS, "alice", CLUSTER);
            Fence.logRefusals();
        });
        assertEquals(1, LogCapture.lines(log, "create topics or partitions"), log);
        assertTrue(log.contains("3 requests to create topics or partitions were refused, the last of user \"al\\u000aice\","
                + " client-id \"app\""), log);
    }
}
