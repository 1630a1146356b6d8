"""Drives a ps_server with grpcio and protobuf's own Python classes, as a client in another language would.

Needs the release build's ps_server, in $KEELSON_BINARY_DIR or build/release/bin, and protoc.
"""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

import grpc
from programs import BINARIES, REPOSITORY, free_port

# For what must happen soon; only a broken server takes this long.
DEADLINE_SECONDS = 60.0

LEARNING_RATE = 0.5
BLOCK_ELEMENTS = 8
# (name, shape), one partition each, in this order.
VARIABLES = (("dense/kernel", (3, 5)), ("dense/scale", (4,)))
# (partition, block, elements).
BLOCKS = ((0, 0, 8), (0, 1, 7), (1, 0, 4))
TOKEN = "the-token-of-the-job"
PROTOCOL = "9"
WORKER = 1000
SECRET = 0x5EC2E7
ELEMENTS = sum(elements for _, _, elements in BLOCKS)

CONFIG = """
model {
  name: "interop"
  input_shape: [4]
  layers { name: "scores" dense { units: 2 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
optimizer { sgd {} }
learning_rate { base: 0.5 }
data { generated { train_records: 100 eval_records: 10 } }
train { batch_size: 10 max_steps: 10 }
"""

cluster_pb2 = None
service_pb2 = None
wire_pb2 = None


def setUpModule():
    """Generates protobuf's classes, as a user of another language does."""
    global cluster_pb2, service_pb2, wire_pb2
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    protos = os.path.join(REPOSITORY, "proto")
    names = sorted(n for n in os.listdir(os.path.join(protos, "keelson", "v1")) if n.endswith(".proto"))
    subprocess.run(
        ["protoc", f"-I{protos}", f"--python_out={folder.name}", *(f"keelson/v1/{n}" for n in names)],
        check=True,
    )
    # The package for scripts has the same name, and another test may have imported it. One with this file comes before it.
    with open(os.path.join(folder.name, "keelson", "__init__.py"), "x", encoding="utf-8"):
        pass
    others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "keelson"}
    unittest.addModuleCleanup(sys.modules.update, others)
    sys.path.insert(0, folder.name)
    unittest.addModuleCleanup(sys.path.remove, folder.name)
    from keelson.v1 import cluster_pb2 as cluster
    from keelson.v1 import parameter_service_pb2 as service
    from keelson.v1 import wire_format_pb2 as wire

    cluster_pb2, service_pb2, wire_pb2 = cluster, service, wire


def metadata(method):
    """What a caller shows who belongs to the job: the message protocol, its role and the job's token."""
    role = "worker" if method in ("Pull", "Push", "PushPull") else "chief"
    return (("keelson-protocol", PROTOCOL), ("keelson-role", role), ("keelson-job-token", TOKEN))


def members(epoch, *incarnations):
    """worker-0 with each of these incarnations and the secret, in an epoch in which nobody else belongs to the job."""
    result = cluster_pb2.MemberList(epoch=epoch)
    for incarnation in incarnations:
        member = result.members.add(incarnation=incarnation, membership_secret=SECRET)
        member.task.role = cluster_pb2.ROLE_WORKER
    return result


def placement():
    """All variables on the one shard, with initial values of both signs."""
    result = cluster_pb2.Placement(num_shards=1, block_elements=BLOCK_ELEMENTS)
    for index, (name, shape) in enumerate(VARIABLES):
        variable = result.variables.add(name=name, shape=shape)
        variable.initializer.uniform.low = -1
        variable.initializer.uniform.high = 1
        result.partitions.add(variable=index, shard=0, row_begin=0, row_end=shape[0])
    return result


def fingerprint(message):
    """Placement::Fingerprint: FNV-1a of the serialised placement."""
    value = 0xCBF29CE484222325
    for byte in message.SerializeToString(deterministic=True):
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def floats(payload):
    return list(struct.unpack(f"<{len(payload) // 4}f", payload))


def as_float32(values):
    return struct.pack(f"<{len(values)}f", *values)


def as_float16(values):
    return struct.pack(f"<{len(values)}e", *values)


def as_bfloat16(values):
    """The upper half of the float32, rounded to nearest, ties to even."""
    halves = []
    for (bits,) in struct.iter_unpack("<I", as_float32(values)):
        halves.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return struct.pack(f"<{len(halves)}H", *halves)


def stepped(values, gradients):
    """One step of SGD in float32."""
    return floats(as_float32([v - LEARNING_RATE * g for v, g in zip(values, gradients)]))


def gradients():
    """Distinct, and exact in every format."""
    return [(-1) ** i * (i + 1) / 8 for i in range(ELEMENTS)]


class ParameterServiceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = os.path.join(BINARIES, "ps_server")
        if not os.path.exists(program):
            raise unittest.SkipTest(f"skipped: no {program}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        token_file = os.path.join(folder.name, "token")
        with open(token_file, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(TOKEN)
        config = os.path.join(folder.name, "config.textproto")
        with open(config, "w", encoding="ascii") as file:
            file.write(CONFIG)
        cls.log = open(os.path.join(folder.name, "log"), "w+", encoding="utf-8")
        cls.addClassCleanup(cls.log.close)
        port = free_port()
        cls.server = subprocess.Popen(
            [
                program,
                f"--config={config}",
                f"--model_dir={os.path.join(folder.name, 'model')}",
                f"--ps_hosts=localhost:{port}",
                f"--worker_hosts=localhost:{free_port()}",
                f"--chief_hosts=localhost:{free_port()}",
                "--job_name=ps",
                f"--job_token_file={token_file}",
                "--task_index=0",
            ],
            env={k: v for k, v in os.environ.items() if k != "TF_CONFIG"},
            stderr=cls.log,
        )
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        cls.channel = grpc.insecure_channel(f"localhost:{port}")
        cls.addClassCleanup(cls.channel.close)
        try:
            grpc.channel_ready_future(cls.channel).result(timeout=DEADLINE_SECONDS)
        except grpc.FutureTimeoutError:
            raise AssertionError(f"ps_server does not answer:\n{cls.logged()}") from None

    @classmethod
    def tearDownClass(cls):
        finish = service_pb2.FinishShardRequest()
        finish.header.incarnation = finish.header.chief_term = cls.incarnation
        cls.call("Finish", finish, service_pb2.FinishShardResponse)
        code = cls.server.wait(timeout=DEADLINE_SECONDS)
        if code != 0:
            raise AssertionError(f"ps_server ended with exit code {code}:\n{cls.logged()}")

    @classmethod
    def logged(cls):
        cls.log.seek(0)
        return cls.log.read()

    # A new chief: the shard starts over, with the same initial values.
    incarnation = 1

    def setUp(self):
        type(self).incarnation += 1
        self.placement = placement()
        status = self.call("GetStatus", service_pb2.GetShardStatusRequest(), service_pb2.ShardStatus)
        request = service_pb2.InitializeShardRequest(
            config_hash=status.config_hash,
            shard=0,
            placement=self.placement,
            placement_fingerprint=fingerprint(self.placement),
            max_steps=10,
            seed=7,
        )
        request.header.task.role = cluster_pb2.ROLE_CHIEF
        request.header.incarnation = request.header.chief_term = self.incarnation
        request.optimizer.sgd.SetInParent()
        request.learning_rate.base = LEARNING_RATE
        request.members.CopyFrom(members(1, WORKER, WORKER + 1))
        response = self.call("Initialize", request, service_pb2.InitializeShardResponse)
        self.assertEqual(response.status.state, service_pb2.ShardStatus.READY)
        self.sequence = 0

    @classmethod
    def call(cls, method, request, response_class):
        """Fails unless protobuf would have written the same bytes as the server."""
        raw = cls.call_raw(method, request.SerializeToString())
        response = response_class.FromString(raw)
        if response.SerializeToString() != raw:
            raise AssertionError(f"{method}: protobuf writes {response.SerializeToString()!r}, found {raw!r}")
        return response

    @classmethod
    def call_raw(cls, method, request):
        call = cls.channel.unary_unary(f"/keelson.v1.ParameterService/{method}")
        return call(request, timeout=DEADLINE_SECONDS, metadata=metadata(method))

    def fill(self, request, wire_format=0, pull_format=0):
        """Asks for all blocks."""
        request.header.task.role = cluster_pb2.ROLE_WORKER
        request.header.incarnation = WORKER
        request.header.membership_secret = SECRET
        request.placement_fingerprint = fingerprint(self.placement)
        for partition, count in ((0, 2), (1, 1)):
            request.ranges.add(
                partition=partition, first_block=0, num_blocks=count, format=wire_format, pull_format=pull_format
            )
        return request

    def pull_request(self, wire_format=0, known_versions=()):
        request = self.fill(service_pb2.PullRequest(), wire_format)
        request.known_versions.extend(known_versions)
        return request

    def push_request(self, payload, wire_format=0, pull_format=0):
        self.sequence += 1
        request = self.fill(service_pb2.PushRequest(), wire_format, pull_format)
        request.sequence = self.sequence
        request.step = self.sequence - 1
        request.pulled_shard_step = self.sequence - 1
        request.last_part = True
        request.payload = payload
        return request

    def pull(self, wire_format=0, known_versions=()):
        return self.call("Pull", self.pull_request(wire_format, known_versions), service_pb2.PullResponse)

    def push(self, request):
        return self.call("Push", request, service_pb2.PushResponse)

    def push_pull(self, request):
        return self.call("PushPull", request, service_pb2.PushPullResponse)

    def values(self):
        return floats(self.pull().payload)

    def assert_refused(self, method, request, *texts):
        """INVALID_ARGUMENT with all `texts`, and nothing has changed."""
        before = self.pull()
        with self.assertRaises(grpc.RpcError) as caught:
            self.call_raw(method, request if isinstance(request, bytes) else request.SerializeToString())
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        for text in texts:
            self.assertIn(text, caught.exception.details())
        self.assertEqual(self.pull(), before)

    def test_pull_gives_the_initial_values(self):
        response = self.pull()
        self.assertEqual([(b.partition, b.block) for b in response.blocks], [(p, b) for p, b, _ in BLOCKS])
        values = floats(response.payload)
        self.assertEqual(len(values), ELEMENTS)
        self.assertEqual(len(set(values)), ELEMENTS)
        self.assertTrue(all(-1 <= v < 1 for v in values), values)
        self.assertNotEqual(response.store_id, 0)
        self.assertEqual(response.shard_step, 0)

    def test_push_moves_the_values_by_the_learning_rate(self):
        before = self.values()
        response = self.push(self.push_request(as_float32(gradients())))
        self.assertEqual((response.shard_step, response.staleness, response.duplicate_blocks), (1, 0, 0))
        self.assertEqual(self.values(), stepped(before, gradients()))

    def test_push_pull_returns_the_new_values(self):
        before = self.pull()
        response = self.push_pull(self.push_request(as_float32(gradients())))
        self.assertEqual(floats(response.payload), stepped(floats(before.payload), gradients()))
        after = self.pull()
        self.assertEqual(response.payload, after.payload)
        self.assertEqual(list(response.blocks), list(after.blocks))
        self.assertEqual((response.shard_step, response.store_id), (1, before.store_id))

    def test_pull_in_short_formats(self):
        values = self.values()
        self.assertEqual(self.pull(wire_pb2.FLOAT16).payload, as_float16(values))
        self.assertEqual(self.pull(wire_pb2.BFLOAT16).payload, as_bfloat16(values))

    def test_push_in_short_formats(self):
        for wire_format, encode in ((wire_pb2.FLOAT16, as_float16), (wire_pb2.BFLOAT16, as_bfloat16)):
            before = self.values()
            self.push(self.push_request(encode(gradients()), wire_format))
            self.assertEqual(self.values(), stepped(before, gradients()))

    def test_push_int8(self):
        before = self.values()
        numbers = [(-1) ** i * (i + 1) for i in range(ELEMENTS)]
        payload, first = b"", 0
        for _, _, count in BLOCKS:
            payload += struct.pack(f"<f{count}b", 0.25, *numbers[first : first + count])
            first += count
        self.push(self.push_request(payload, wire_pb2.INT8))
        self.assertEqual(self.values(), stepped(before, [0.25 * n for n in numbers]))

    def test_push_top_k(self):
        before = self.values()
        # The blocks' elements in the message: 1 and 7; none; 3.
        payload = struct.pack("<III2f", 2, 1, 7, 0.5, -2) + struct.pack("<I", 0) + struct.pack("<IIf", 1, 3, 4)
        self.push(self.push_request(payload, wire_pb2.TOP_K))
        moved = [0.0] * ELEMENTS
        moved[1], moved[7], moved[18] = 0.5, -2, 4
        self.assertEqual(self.values(), stepped(before, moved))

    def test_push_pull_with_a_format_for_each_direction(self):
        before = self.values()
        request = self.push_request(as_float16(gradients()), wire_pb2.FLOAT16, wire_pb2.BFLOAT16)
        response = self.push_pull(request)
        self.assertEqual(response.payload, as_bfloat16(stepped(before, gradients())))

    def test_repeated_push_is_applied_once(self):
        request = self.push_request(as_float32(gradients()))
        self.push(request)
        after = self.values()
        self.assertEqual(self.push(request).duplicate_blocks, len(BLOCKS))
        self.assertEqual(self.values(), after)

    def test_conditional_pull_sends_what_has_changed(self):
        versions = [block.version for block in self.pull().blocks]
        response = self.pull(known_versions=versions)
        self.assertEqual((len(response.blocks), response.payload), (0, b""))
        request = self.push_request(as_float32(gradients()[15:]))
        del request.ranges[0]
        self.push(request)
        response = self.pull(known_versions=versions)
        self.assertEqual([(b.partition, b.block) for b in response.blocks], [(1, 0)])
        self.assertEqual(len(response.payload), 16)

    def test_payload_of_the_wrong_size_is_refused(self):
        payload = as_float32(gradients())
        self.assert_refused("Push", self.push_request(payload[:-1]), "dense/scale")
        self.assert_refused("PushPull", self.push_request(payload[:20]), "dense/kernel")
        self.assert_refused("Push", self.push_request(payload + b"\0"), "dense/scale")
        self.assert_refused("Push", self.push_request(b""), "dense/kernel")
        self.assert_refused("Push", self.push_request(payload, wire_pb2.BFLOAT16), "dense/scale")

    def test_top_k_position_beyond_the_block_is_refused(self):
        payload = struct.pack("<IIf", 1, 8, 1.0) + struct.pack("<I", 0) * 2
        self.assert_refused("Push", self.push_request(payload, wire_pb2.TOP_K), "dense/kernel")

    def test_unknown_block_is_refused(self):
        request = self.pull_request()
        request.ranges[1].num_blocks = 2
        self.assert_refused("Pull", request, "dense/scale")

    def test_format_that_does_not_exist_is_refused(self):
        request = self.pull_request()
        request.ranges[0].format = 5
        self.assert_refused("Pull", request, "ranges.format")

    def test_bytes_that_are_no_message_are_refused(self):
        self.assert_refused("Push", b"\x28", "sequence")
        self.assert_refused("Pull", b"\x1a\x05\x08", "ranges")
        self.assert_refused("PushPull", b"\x7a\x80", "payload")

    def test_unknown_fields_are_skipped(self):
        # Field 100, a varint, before the payload; what a newer client might send.
        request = self.pull_request().SerializeToString() + b"\xa0\x06\x01"
        self.assertEqual(service_pb2.PullResponse.FromString(self.call_raw("Pull", request)), self.pull())

    def assert_status(self, code, method, request):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call_raw(method, request.SerializeToString())
        self.assertEqual(caught.exception.code(), code)

    def test_pushes_of_a_round_wait_for_its_commit(self):
        before = self.values()
        request = self.push_request(as_float32(gradients()))
        request.attempt, request.round, request.weight = 3, 0, 2.5
        self.push(request)
        self.assertEqual(self.values(), before)
        commit = service_pb2.CommitRoundRequest(round=0, attempt=3, contributions=1)
        commit.header.incarnation = commit.header.chief_term = self.incarnation
        self.assertEqual(self.call("CommitRound", commit, service_pb2.CommitRoundResponse).shard_step, 1)
        for value, expected in zip(self.values(), stepped(before, gradients())):
            self.assertAlmostEqual(value, expected, places=6)
        request.sequence += 1
        self.assert_status(grpc.StatusCode.FAILED_PRECONDITION, "Push", request)

    def test_a_membership_that_is_over_is_aborted(self):
        request = self.push_request(as_float32(gradients()))
        request.header.incarnation = WORKER + 1
        self.push(request)
        heartbeat = service_pb2.ChiefHeartbeatRequest(members=members(2, WORKER))
        heartbeat.header.incarnation = heartbeat.header.chief_term = self.incarnation
        self.call("ChiefHeartbeat", heartbeat, service_pb2.ShardStatus)
        request.sequence += 1
        self.assert_status(grpc.StatusCode.ABORTED, "Push", request)

    def test_an_incarnation_without_its_secret_is_aborted(self):
        request = self.push_request(as_float32(gradients()))
        for secret in (0, SECRET + 1):
            request.header.membership_secret = secret
            self.assert_status(grpc.StatusCode.ABORTED, "Push", request)
        request.header.membership_secret = SECRET
        self.push(request)

    def test_snapshot_streams(self):
        request = service_pb2.StreamSnapshotRequest()
        request.header.incarnation = request.header.chief_term = self.incarnation
        stream = self.channel.unary_stream(
            "/keelson.v1.ParameterService/StreamSnapshot",
            response_deserializer=service_pb2.SnapshotChunk.FromString,
        )(request.SerializeToString(), timeout=DEADLINE_SECONDS, metadata=metadata("StreamSnapshot"))
        *chunks, last = stream
        data = b"".join(chunk.data for chunk in chunks)
        self.assertEqual(len(data), last.end.bytes_written)
        self.assertEqual(floats(data[: 4 * 15]), self.values()[:15])
        self.assertTrue(last.end.entries)

    def test_a_caller_without_the_token_or_in_another_role_is_refused(self):
        protocol = ("keelson-protocol", PROTOCOL)
        for shown, code in (
            ((protocol,), grpc.StatusCode.PERMISSION_DENIED),
            ((protocol, ("keelson-role", "chief")), grpc.StatusCode.PERMISSION_DENIED),
            (metadata("Pull"), grpc.StatusCode.PERMISSION_DENIED),
            (metadata("Finish")[1:], grpc.StatusCode.FAILED_PRECONDITION),
        ):
            call = self.channel.unary_unary("/keelson.v1.ParameterService/Finish")
            with self.assertRaises(grpc.RpcError) as caught:
                call(b"", timeout=DEADLINE_SECONDS, metadata=shown)
            self.assertEqual(caught.exception.code(), code)

    def test_other_placement_is_aborted(self):
        request = self.pull_request()
        request.placement_fingerprint += 1
        with self.assertRaises(grpc.RpcError) as caught:
            self.call_raw("Pull", request.SerializeToString())
        self.assertEqual(caught.exception.code(), grpc.StatusCode.ABORTED)
