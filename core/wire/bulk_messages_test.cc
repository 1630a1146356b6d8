#include "core/wire/bulk_messages.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMaxUint64 = std::numeric_limits<uint64_t>::max();

// Numbers of all lengths as a varint, small ones and the extremes among them.
class RandomNumbers {
 public:
  explicit RandomNumbers(uint32_t seed) : engine_(seed) {}

  uint64_t Next64() {
    const uint64_t bits = engine_();
    return bits % 8 == 0 ? 0 : bits % 8 == 1 ? kMaxUint64 : bits >> (engine_() % 64);
  }
  uint32_t Next32() { return static_cast<uint32_t>(Next64()); }
  int64_t NextSigned() { return static_cast<int64_t>(Next64()); }
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  float Weight() {
    constexpr float kWeights[] = {0, -0.0f, 1, 100, -0.1f, 1e-42f, 3e38f};
    return kWeights[Below(7)];
  }
  WireFormat Format() { return static_cast<WireFormat>(Below(kNumWireFormats)); }

 private:
  std::mt19937_64 engine_;
};

std::vector<RowSection> RandomRows(RandomNumbers* random) {
  std::vector<RowSection> rows(random->Below(4));
  for (RowSection& section : rows) {
    section.table = random->Next32();
    section.first_partition = random->Next32();
    section.num_partitions = random->Next32();
    section.num_ids = random->Next32();
    section.id_coding = static_cast<IdCoding>(random->Below(kNumIdCodings));
    section.id_bytes = random->Next32();
    section.format = random->Format();
    section.purpose = static_cast<RowPurpose>(random->Below(kNumRowPurposes));
    section.num_rows = random->Next32();
  }
  return rows;
}

BulkRequest RandomRequest(RandomNumbers* random) {
  BulkRequest request;
  request.role = random->Below(5);
  request.task_index = random->Next32();
  request.incarnation = random->Next64();
  request.member_epoch = random->Next64();
  request.membership_secret = random->Next64();
  request.shard = random->Next32();
  request.placement_fingerprint = random->Next64();
  request.ranges.resize(random->Below(4));
  for (BlockRange& range : request.ranges) {
    range = {random->Next32(), random->Next32(), random->Next32(),
             random->Format(), random->Format(), random->Below(2) == 1};
  }
  request.rows = RandomRows(random);
  return request;
}

BulkRequest RandomPull(RandomNumbers* random) {
  BulkRequest request = RandomRequest(random);
  request.known_versions.resize(random->Below(40));
  for (uint64_t& version : request.known_versions) version = random->Next64();
  return request;
}

BulkRequest RandomPush(RandomNumbers* random) {
  BulkRequest request = RandomRequest(random);
  request.sequence = random->Next64();
  request.step = random->NextSigned();
  request.pulled_shard_step = random->NextSigned();
  request.last_part = random->Below(2) == 1;
  request.attempt = random->Next32();
  request.round = random->NextSigned();
  request.weight = random->Weight();
  request.steps_under_way = random->Next32();
  request.unseen_pushes = random->Next32();
  return request;
}

// The place among a round's gradients goes before the payload, where protobuf would not write it.
TEST(BulkMessagesTest, TheOrderOfAPushIsReadByProtobuf) {
  BulkRequest request;
  request.sequence = 3;
  for (const uint32_t order : {1u, 200u, std::numeric_limits<uint32_t>::max()}) {
    request.order = order;
    const std::string bytes = EncodeBulkRequest(request, 5) + "bytes";
    v1::PushRequest proto;
    ASSERT_TRUE(proto.ParseFromString(bytes));
    EXPECT_EQ(proto.order(), order);
    EXPECT_EQ(proto.payload(), "bytes");
    ByteRope rope;
    rope.AppendCopy(bytes);
    ByteCursor cursor(rope);
    BulkRequest read;
    EXPECT_EQ(*DecodeBulkRequest(&cursor, &read), 5);
    EXPECT_EQ(read, request);
  }
}

BulkResponse RandomResponse(RandomNumbers* random) {
  BulkResponse response;
  response.shard_step = random->NextSigned();
  response.store_id = random->Next64();
  response.blocks.resize(random->Below(4));
  for (BlockHeader& block : response.blocks) {
    block = {random->Next32(), random->Next32(), random->Next64()};
  }
  response.staleness = random->NextSigned();
  response.duplicate_blocks = random->Next32();
  response.credits = random->Next32();
  response.rows = RandomRows(random);
  return response;
}

template <typename Proto>
void FillRows(const std::vector<RowSection>& rows, Proto* proto) {
  for (const RowSection& section : rows) {
    v1::RowSection* to = proto->add_rows();
    to->set_table(section.table);
    to->set_first_partition(section.first_partition);
    to->set_num_partitions(section.num_partitions);
    to->set_num_ids(section.num_ids);
    to->set_id_coding(static_cast<v1::RowSection::IdCoding>(section.id_coding));
    to->set_id_bytes(section.id_bytes);
    to->set_format(static_cast<v1::WireFormat>(section.format));
    to->set_purpose(static_cast<v1::RowSection::Purpose>(section.purpose));
    to->set_num_rows(section.num_rows);
  }
}

template <typename Proto>
void FillRequest(const BulkRequest& request, Proto* proto) {
  if (request.role != 0 || request.task_index != 0) {
    v1::TaskId* task = proto->mutable_header()->mutable_task();
    task->set_role(static_cast<v1::Role>(request.role));
    task->set_index(request.task_index);
  }
  if (request.incarnation != 0) proto->mutable_header()->set_incarnation(request.incarnation);
  if (request.member_epoch != 0) proto->mutable_header()->set_member_epoch(request.member_epoch);
  if (request.membership_secret != 0) {
    proto->mutable_header()->set_membership_secret(request.membership_secret);
  }
  if (request.shard != 0) proto->mutable_header()->set_shard(request.shard);
  proto->set_placement_fingerprint(request.placement_fingerprint);
  for (const BlockRange& range : request.ranges) {
    v1::BlockRange* to = proto->add_ranges();
    to->set_partition(range.partition);
    to->set_first_block(range.first_block);
    to->set_num_blocks(range.num_blocks);
    to->set_format(static_cast<v1::WireFormat>(range.format));
    to->set_pull_format(static_cast<v1::WireFormat>(range.pull_format));
    to->set_absent(range.absent);
  }
  FillRows(request.rows, proto);
}

v1::PullRequest PullProto(const BulkRequest& request) {
  v1::PullRequest proto;
  FillRequest(request, &proto);
  for (const uint64_t version : request.known_versions) proto.add_known_versions(version);
  return proto;
}

v1::PushRequest PushProto(const BulkRequest& request) {
  v1::PushRequest proto;
  FillRequest(request, &proto);
  proto.set_sequence(request.sequence);
  proto.set_step(request.step);
  proto.set_pulled_shard_step(request.pulled_shard_step);
  proto.set_last_part(request.last_part);
  proto.set_attempt(request.attempt);
  proto.set_round(request.round);
  proto.set_weight(request.weight);
  proto.set_steps_under_way(request.steps_under_way);
  proto.set_unseen_pushes(request.unseen_pushes);
  return proto;
}

template <typename Proto>
void FillBlocks(const BulkResponse& response, Proto* proto) {
  for (const BlockHeader& block : response.blocks) {
    v1::BlockHeader* to = proto->add_blocks();
    to->set_partition(block.partition);
    to->set_block(block.block);
    to->set_version(block.version);
  }
  FillRows(response.rows, proto);
}

template <typename Proto>
void FillPushed(const BulkResponse& response, Proto* proto) {
  proto->set_staleness(response.staleness);
  proto->set_duplicate_blocks(response.duplicate_blocks);
}

template <typename Proto>
Proto ResponseProto(const BulkResponse& response) {
  Proto proto;
  proto.set_shard_step(response.shard_step);
  proto.set_store_id(response.store_id);
  proto.set_credits(response.credits);
  return proto;
}

// Deterministic bytes that look like fields, as a payload may.
std::string Payload(size_t size) {
  std::string payload(size, '\x7A');
  for (size_t i = 0; i < size; i += 3) payload[i] = static_cast<char>(i);
  return payload;
}

// As one fragment, or cut before each of `cuts` (ascending).
ByteRope Cut(absl::string_view bytes, const std::vector<size_t>& cuts) {
  ByteRope rope;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    // Each fragment has its own allocation, so that the address sanitizer detects reads beyond it.
    rope.AppendCopy(bytes.substr(begin, cut - begin));
    begin = cut;
  }
  rope.AppendCopy(bytes.substr(begin));
  return rope;
}

absl::StatusOr<size_t> DecodeMessage(ByteCursor* cursor, BulkRequest* message) {
  return DecodeBulkRequest(cursor, message);
}
absl::StatusOr<size_t> DecodeMessage(ByteCursor* cursor, BulkResponse* message) {
  return DecodeBulkResponse(cursor, message);
}

template <typename Message>
struct Decoded {
  Message message;
  size_t payload_bytes = 0;
  std::string rest;  // what the cursor stands at
};

template <typename Message>
absl::StatusOr<Decoded<Message>> DecodeFrom(const ByteRope& rope) {
  Decoded<Message> decoded;
  ByteCursor cursor(rope);
  ASSIGN_OR_RETURN(decoded.payload_bytes, DecodeMessage(&cursor, &decoded.message));
  decoded.rest.resize(cursor.remaining());
  cursor.Read(decoded.rest.data(), decoded.rest.size());
  return decoded;
}

template <typename Message>
void ExpectDecodes(const ByteRope& rope, const Message& expected, const std::string& payload) {
  const absl::StatusOr<Decoded<Message>> decoded = DecodeFrom<Message>(rope);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(decoded->message == expected);
  EXPECT_EQ(decoded->payload_bytes, payload.size());
  EXPECT_EQ(decoded->rest, payload);
}

// As one fragment, cut in two at every place, and as single bytes.
template <typename Message>
void ExpectDecodesHoweverCut(const std::string& bytes, const Message& expected,
                             const std::string& payload) {
  std::vector<size_t> everywhere;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    ExpectDecodes(Cut(bytes, {cut}), expected, payload);
    everywhere.push_back(cut);
  }
  ExpectDecodes(Cut(bytes, everywhere), expected, payload);
}

absl::Status RequestError(absl::string_view bytes) {
  const absl::Status whole = DecodeFrom<BulkRequest>(Cut(bytes, {})).status();
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(DecodeFrom<BulkRequest>(Cut(bytes, {cut})).status(), whole) << cut;
  }
  return whole;
}

absl::Status ResponseError(absl::string_view bytes) {
  return DecodeFrom<BulkResponse>(Cut(bytes, {})).status();
}

void ExpectMalformed(const absl::Status& status, absl::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(text)));
}

std::string Bytes(absl::string_view hex) {
  std::string compact(hex);
  compact.erase(std::remove(compact.begin(), compact.end(), ' '), compact.end());
  return absl::HexStringToBytes(compact);
}

TEST(BulkMessagesTest, MethodNames) {
  EXPECT_EQ(BulkMethodName(BulkMethod::kPull), "Pull");
  EXPECT_EQ(BulkMethodName(BulkMethod::kPush), "Push");
  EXPECT_EQ(BulkMethodName(BulkMethod::kPushPull), "PushPull");
}

TEST(BulkMessagesTest, EmptyMessagesAreEmpty) {
  EXPECT_EQ(EncodeBulkRequest({}, 0), "");
  EXPECT_EQ(EncodeBulkResponse({}, 0), "");
  ExpectDecodes(Cut("", {}), BulkRequest(), "");
  ExpectDecodes(Cut("", {}), BulkResponse(), "");
}

TEST(BulkMessagesTest, WritesProtobufsBytes) {
  RandomNumbers random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string payload = Payload(random.Below(3) * 100);
    const BulkRequest pull = RandomPull(&random);
    EXPECT_EQ(EncodeBulkRequest(pull, 0), PullProto(pull).SerializeAsString());

    const BulkRequest push = RandomPush(&random);
    v1::PushRequest push_proto = PushProto(push);
    push_proto.set_payload(payload);
    EXPECT_EQ(EncodeBulkRequest(push, payload.size()) + payload, push_proto.SerializeAsString());
  }
}

TEST(BulkMessagesTest, WritesProtobufsBytesOfResponses) {
  RandomNumbers random(2);
  for (int i = 0; i < 500; ++i) {
    const std::string payload = Payload(random.Below(3) * 100);
    const BulkResponse both = RandomResponse(&random);
    auto both_proto = ResponseProto<v1::PushPullResponse>(both);
    FillBlocks(both, &both_proto);
    FillPushed(both, &both_proto);
    both_proto.set_payload(payload);
    EXPECT_EQ(EncodeBulkResponse(both, payload.size()) + payload, both_proto.SerializeAsString());

    BulkResponse pull = both;
    pull.staleness = 0;
    pull.duplicate_blocks = 0;
    auto pull_proto = ResponseProto<v1::PullResponse>(pull);
    FillBlocks(pull, &pull_proto);
    pull_proto.set_payload(payload);
    EXPECT_EQ(EncodeBulkResponse(pull, payload.size()) + payload, pull_proto.SerializeAsString());

    BulkResponse push = both;
    push.blocks.clear();
    push.rows.clear();
    auto push_proto = ResponseProto<v1::PushResponse>(push);
    FillPushed(push, &push_proto);
    EXPECT_EQ(EncodeBulkResponse(push, 0), push_proto.SerializeAsString());
  }
}

TEST(BulkMessagesTest, ReadsWhatProtobufWrote) {
  RandomNumbers random(3);
  for (int i = 0; i < 300; ++i) {
    const std::string payload = Payload(random.Below(3) * 50);
    const BulkRequest pull = RandomPull(&random);
    ExpectDecodes(Cut(PullProto(pull).SerializeAsString(), {}), pull, "");
    const BulkRequest push = RandomPush(&random);
    v1::PushRequest push_proto = PushProto(push);
    push_proto.set_payload(payload);
    ExpectDecodes(Cut(push_proto.SerializeAsString(), {}), push, payload);
    const BulkResponse response = RandomResponse(&random);
    ExpectDecodes(Cut(EncodeBulkResponse(response, payload.size()) + payload, {}), response,
                  payload);
  }
}

TEST(BulkMessagesTest, ReadsHeadersCutAnywhere) {
  RandomNumbers random(4);
  const std::string payload = Payload(7);
  for (int i = 0; i < 30; ++i) {
    const BulkRequest pull = RandomPull(&random);
    ExpectDecodesHoweverCut(EncodeBulkRequest(pull, 0), pull, "");
    const BulkRequest push = RandomPush(&random);
    ExpectDecodesHoweverCut(EncodeBulkRequest(push, payload.size()) + payload, push, payload);
    const BulkResponse response = RandomResponse(&random);
    ExpectDecodesHoweverCut(EncodeBulkResponse(response, payload.size()) + payload, response,
                            payload);
  }
}

TEST(BulkMessagesTest, LargePayloadsStayWhereTheyAre) {
  BulkRequest request;
  request.sequence = 5;
  const std::string payload = Payload(1 << 20);
  ByteRope rope;
  rope.AppendOwned(EncodeBulkRequest(request, payload.size()));
  rope.AppendBorrowed(payload.data(), payload.size());
  ByteCursor cursor(rope);
  BulkRequest decoded;
  ASSERT_EQ(*DecodeBulkRequest(&cursor, &decoded), payload.size());
  EXPECT_EQ(cursor.remaining(), payload.size());
  EXPECT_EQ(cursor.Next(payload.size()).data(), reinterpret_cast<const uint8_t*>(payload.data()));
}

TEST(BulkMessagesTest, DecodingForgetsWhatTheMessageHeldBefore) {
  RandomNumbers random(5);
  BulkRequest request = RandomPush(&random);
  request.ranges.resize(2);
  request.known_versions = {1, 2};
  request.rows.resize(2);
  BulkResponse response = RandomResponse(&random);
  response.blocks.resize(3);
  response.rows.resize(3);
  const ByteRope nothing;
  ByteCursor cursor(nothing);
  ASSERT_TRUE(DecodeBulkRequest(&cursor, &request).ok());
  EXPECT_TRUE(request == BulkRequest());
  ASSERT_TRUE(DecodeBulkResponse(&cursor, &response).ok());
  EXPECT_TRUE(response == BulkResponse());
}

TEST(BulkMessagesTest, ReadsPackedAndUnpackedVersions) {
  BulkRequest expected;
  expected.known_versions = {1, 2, 300, 4};
  // Unpacked 1; packed 2 and 300; unpacked 4; packed nothing.
  ExpectDecodesHoweverCut(Bytes("20 01  22 03 02 AC 02  20 04  22 00"), expected, "");
}

TEST(BulkMessagesTest, LastValueWinsAndMessagesMerge) {
  BulkRequest expected;
  expected.role = 3;
  expected.task_index = 2;
  expected.sequence = 9;
  // sequence 1; header { task { role 3 index 1 } }; header { task { index 2 } }; sequence 9.
  ExpectDecodesHoweverCut(Bytes("28 01  0A 06 0A 04 08 03 10 01  0A 04 0A 02 10 02  28 09"),
                          expected, "");
}

TEST(BulkMessagesTest, FieldsMayComeInAnyOrder) {
  BulkRequest expected;
  expected.sequence = 7;
  expected.step = 1;
  expected.ranges = {{.partition = 2, .num_blocks = 1}};
  ExpectDecodes(Cut(Bytes("30 01  1A 04 18 01 08 02  28 07"), {}), expected, "");
}

TEST(BulkMessagesTest, SkipsUnknownFields) {
  BulkRequest expected;
  expected.sequence = 7;
  expected.ranges = {{.num_blocks = 1}};
  // Fields 20 (varint), 21 (64 bits), 22 (3 bytes), 23 (32 bits); field 9 within a range.
  ExpectDecodesHoweverCut(Bytes("A0 01 FF 01  A9 01 01 02 03 04 05 06 07 08  B2 01 03 7A 7A 7A"
                                "BD 01 01 02 03 04  1A 05 4A 01 00 18 01  28 07  7A 02 01 02"),
                          expected, Bytes("01 02"));
}

TEST(BulkMessagesTest, ReadsNegativeNumbersAndLongBools) {
  BulkRequest expected;
  expected.step = -1;
  expected.pulled_shard_step = std::numeric_limits<int64_t>::min();
  expected.last_part = true;
  ExpectDecodesHoweverCut(Bytes("30 FF FF FF FF FF FF FF FF FF 01"
                                "38 80 80 80 80 80 80 80 80 80 01  40 80 01"),
                          expected, "");
}

TEST(BulkMessagesTest, ReadsAnEmptyPayload) {
  BulkRequest expected;
  expected.sequence = 7;
  ExpectDecodesHoweverCut(Bytes("28 07 7A 00"), expected, "");
}

TEST(BulkMessagesTest, TruncationsAreErrorsOfTheField) {
  ExpectMalformed(RequestError(Bytes("28")), "field sequence: the message ends within it");
  ExpectMalformed(RequestError(Bytes("28 80")), "field sequence: the message ends within it");
  ExpectMalformed(RequestError(Bytes("11 01 02 03")), "field placement_fingerprint: the message");
  ExpectMalformed(RequestError(Bytes("1A 05 08 01")), "field ranges: the message ends within it");
  ExpectMalformed(RequestError(Bytes("1A 01 08")), "field ranges.partition: the message ends");
  ExpectMalformed(RequestError(Bytes("1A 02 08 80 01")), "field ranges.partition: the message");
  ExpectMalformed(RequestError(Bytes("0A 04 0A 02 08 80")), "field header.task.role: the message");
  ExpectMalformed(RequestError(Bytes("0A 03 0A 02 08")), "field header.task: the message ends");
  ExpectMalformed(RequestError(Bytes("0A 02 11 00")), "field header.incarnation: the message");
  ExpectMalformed(RequestError(Bytes("22 02 01 80")), "field known_versions: the message ends");
  ExpectMalformed(RequestError(Bytes("80")), "a field's tag: the message ends within it");
  ExpectMalformed(RequestError(Bytes("1A 01 80")), "field ranges: a field's tag: the message");
  ExpectMalformed(RequestError(Bytes("48 80")), "field attempt: the message ends within it");
  ExpectMalformed(RequestError(Bytes("50 80")), "field round: the message ends within it");
  ExpectMalformed(RequestError(Bytes("5D 00 00 80")), "field weight: the message ends within it");
  ExpectMalformed(RequestError(Bytes("7A")), "field payload: the message ends within it");
  ExpectMalformed(RequestError(Bytes("7A 03 01 02")), "field payload: the message ends within it");
  ExpectMalformed(RequestError(Bytes("A9 01 01 02")), "unknown field 21: the message ends");
  ExpectMalformed(RequestError(Bytes("B2 01 03 7A")), "unknown field 22: the message ends");
  ExpectMalformed(RequestError(Bytes("BD 01 03 7A")), "unknown field 23: the message ends");
  ExpectMalformed(RequestError(Bytes("1A 02 4A 09")), "field ranges: unknown field 9: the message");
}

TEST(BulkMessagesTest, EveryTruncationOfAHeaderIsReadOrRefused) {
  RandomNumbers random(6);
  for (int i = 0; i < 50; ++i) {
    const std::string bytes = EncodeBulkRequest(RandomPush(&random), 10) + Payload(10);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const absl::StatusOr<Decoded<BulkRequest>> decoded =
          DecodeFrom<BulkRequest>(Cut(bytes.substr(0, size), {size / 2}));
      // What ends between two fields is a message.
      if (decoded.ok()) {
        EXPECT_EQ(decoded->payload_bytes, 0u);
      } else {
        ExpectMalformed(decoded.status(), "the message ends within it");
      }
    }
  }
}

TEST(BulkMessagesTest, ClaimedSizesBeyondTheMessageAllocateNothing) {
  // 2^62 bytes each.
  const std::string size = Bytes("80 80 80 80 80 80 80 80 40");
  ExpectMalformed(RequestError(Bytes("22") + size), "field known_versions: the message ends");
  ExpectMalformed(RequestError(Bytes("1A") + size), "field ranges: the message ends within it");
  ExpectMalformed(RequestError(Bytes("0A") + size), "field header: the message ends within it");
  ExpectMalformed(RequestError(Bytes("7A") + size), "field payload: the message ends within it");
  ExpectMalformed(RequestError(Bytes("B2 01") + size), "unknown field 22: the message ends");
}

TEST(BulkMessagesTest, NumbersOutOfRange) {
  const std::string two_to_32 = Bytes("80 80 80 80 10");
  ExpectMalformed(RequestError(Bytes("1A 06 08") + two_to_32), "field ranges.partition: out of");
  ExpectMalformed(RequestError(Bytes("1A 06 10") + two_to_32), "field ranges.first_block: out of");
  ExpectMalformed(RequestError(Bytes("1A 06 18") + two_to_32), "field ranges.num_blocks: out of");
  ExpectMalformed(RequestError(Bytes("0A 08 0A 06 10") + two_to_32),
                  "field header.task.index: out");
  ExpectMalformed(RequestError(Bytes("0A 08 0A 06 08") + two_to_32), "field header.task.role: out");
  ExpectMalformed(RequestError(Bytes("48") + two_to_32), "field attempt: out of range");
  ExpectMalformed(ResponseError(Bytes("1A 06 08") + two_to_32), "field blocks.partition: out of");
  ExpectMalformed(ResponseError(Bytes("1A 06 10") + two_to_32), "field blocks.block: out of");
  ExpectMalformed(ResponseError(Bytes("28") + two_to_32), "field duplicate_blocks: out of range");
  ExpectMalformed(ResponseError(Bytes("30") + two_to_32), "field credits: out of range");
}

TEST(BulkMessagesTest, RowsOutOfRange) {
  const std::string two_to_32 = Bytes("80 80 80 80 10");
  ExpectMalformed(RequestError(Bytes("72 06 08") + two_to_32), "field rows.table: out of range");
  ExpectMalformed(RequestError(Bytes("72 06 20") + two_to_32), "field rows.num_ids: out of range");
  ExpectMalformed(RequestError(Bytes("72 06 30") + two_to_32), "field rows.id_bytes: out of range");
  ExpectMalformed(ResponseError(Bytes("72 06 48") + two_to_32), "field rows.num_rows: out of");
  ExpectMalformed(RequestError(Bytes("72 02 28 03")), "field rows.id_coding: no such value");
  ExpectMalformed(RequestError(Bytes("72 02 40 02")), "field rows.purpose: no such value");
  ExpectMalformed(RequestError(Bytes("72 02 38 05")), "field rows.format: no such wire format");
  ExpectMalformed(ResponseError(Bytes("72 01 08")), "field rows.table: the message ends within");
}

TEST(BulkMessagesTest, RowsAreBounded) {
  std::string bytes;
  for (size_t i = 0; i < kMostRowSections; ++i) bytes += Bytes("72 00");
  const ByteRope most = Cut(bytes, {});
  EXPECT_EQ(DecodeFrom<BulkRequest>(most)->message.rows.size(), kMostRowSections);
  EXPECT_EQ(DecodeFrom<BulkResponse>(most)->message.rows.size(), kMostRowSections);
  bytes += Bytes("72 00");
  const absl::string_view text = "field rows: expected at most 8192 entries, found more";
  ExpectMalformed(DecodeFrom<BulkRequest>(Cut(bytes, {})).status(), text);
  ExpectMalformed(ResponseError(bytes), text);
}

TEST(BulkMessagesTest, VarintsBeyond64Bits) {
  ExpectMalformed(RequestError(Bytes("28 FF FF FF FF FF FF FF FF FF 02")),
                  "field sequence: out of range");
  ExpectMalformed(RequestError(Bytes("28 FF FF FF FF FF FF FF FF FF 81 00")),
                  "field sequence: out of range");
  ExpectMalformed(RequestError(Bytes("A0 01 FF FF FF FF FF FF FF FF FF 7F")),
                  "unknown field 20: out of range");
}

TEST(BulkMessagesTest, FormatsThatDoNotExist) {
  ExpectMalformed(RequestError(Bytes("1A 02 20 05")), "field ranges.format: no such wire format");
  ExpectMalformed(RequestError(Bytes("1A 02 28 05")), "field ranges.pull_format: no such wire");
  ExpectMalformed(RequestError(Bytes("1A 0B 20 FF FF FF FF FF FF FF FF FF 01")),
                  "field ranges.format: no such wire format");
}

TEST(BulkMessagesTest, WrongWireTypes) {
  ExpectMalformed(RequestError(Bytes("08 01")), "field header: wrong wire type");
  ExpectMalformed(RequestError(Bytes("10 01")), "field placement_fingerprint: wrong wire type");
  ExpectMalformed(RequestError(Bytes("18 01")), "field ranges: wrong wire type");
  ExpectMalformed(RequestError(Bytes("25 01 02 03 04")), "field known_versions: wrong wire type");
  ExpectMalformed(RequestError(Bytes("2A 00")), "field sequence: wrong wire type");
  ExpectMalformed(RequestError(Bytes("32 00")), "field step: wrong wire type");
  ExpectMalformed(RequestError(Bytes("3A 00")), "field pulled_shard_step: wrong wire type");
  ExpectMalformed(RequestError(Bytes("42 00")), "field last_part: wrong wire type");
  ExpectMalformed(RequestError(Bytes("4A 00")), "field attempt: wrong wire type");
  ExpectMalformed(RequestError(Bytes("52 00")), "field round: wrong wire type");
  ExpectMalformed(RequestError(Bytes("58 01")), "field weight: wrong wire type");
  ExpectMalformed(RequestError(Bytes("78 01")), "field payload: wrong wire type");
  ExpectMalformed(RequestError(Bytes("0A 02 08 01")), "field header.task: wrong wire type");
  ExpectMalformed(RequestError(Bytes("0A 02 10 01")), "field header.incarnation: wrong wire type");
  ExpectMalformed(RequestError(Bytes("0A 04 0A 02 0A 00")), "field header.task.role: wrong wire");
  ExpectMalformed(RequestError(Bytes("1A 02 0A 00")), "field ranges.partition: wrong wire type");
  ExpectMalformed(RequestError(Bytes("1A 02 22 00")), "field ranges.format: wrong wire type");
  ExpectMalformed(ResponseError(Bytes("0A 00")), "field shard_step: wrong wire type");
  ExpectMalformed(ResponseError(Bytes("10 00")), "field store_id: wrong wire type");
  ExpectMalformed(ResponseError(Bytes("18 00")), "field blocks: wrong wire type");
  ExpectMalformed(ResponseError(Bytes("1A 02 1A 00")), "field blocks.version: wrong wire type");
  ExpectMalformed(ResponseError(Bytes("22 00")), "field staleness: wrong wire type");
}

TEST(BulkMessagesTest, GroupsAndUnassignedWireTypes) {
  for (const absl::string_view tag : {"A3 01", "A4 01", "A6 01", "A7 01"}) {
    ExpectMalformed(RequestError(Bytes(tag)), "unknown field 20: wrong wire type");
  }
}

TEST(BulkMessagesTest, TagsThatDoNotExist) {
  ExpectMalformed(RequestError(Bytes("00 01")), "a field's tag: out of range");
  ExpectMalformed(RequestError(Bytes("80 80 80 80 10 01")), "a field's tag: out of range");
  ExpectMalformed(RequestError(Bytes("FF FF FF FF FF FF FF FF FF 7F")), "tag: out of range");
}

TEST(BulkMessagesTest, NothingFollowsThePayload) {
  ExpectMalformed(RequestError(Bytes("7A 01 00 28 07")), "field payload: the message goes on");
  ExpectMalformed(ResponseError(Bytes("7A 01 00 7A 00")), "field payload: the message goes on");
}

TEST(BulkMessagesTest, SaysWhichKindOfMessage) {
  ExpectMalformed(RequestError(Bytes("28")), "malformed request: ");
  ExpectMalformed(ResponseError(Bytes("08")), "malformed response: ");
}

TEST(BulkMessagesTest, AnErrorConsumesNothing) {
  const std::string bytes = Bytes("28 07 1A 05");
  const ByteRope rope = Cut(bytes, {2});
  ByteCursor cursor(rope);
  BulkRequest request;
  EXPECT_FALSE(DecodeBulkRequest(&cursor, &request).ok());
  EXPECT_EQ(cursor.remaining(), bytes.size());
}

TEST(BulkMessagesTest, ReadsTheShardAlone) {
  RandomNumbers random(7);
  for (int i = 0; i < 500; ++i) {
    const std::string payload = Payload(random.Below(3) * 100);
    const BulkRequest pull = RandomPull(&random);
    EXPECT_EQ(ShardOf(Cut(PullProto(pull).SerializeAsString(), {})).value(), pull.shard);
    const BulkRequest push = RandomPush(&random);
    const std::string bytes = EncodeBulkRequest(push, payload.size()) + payload;
    for (size_t cut = 0; cut <= 80; ++cut) {
      EXPECT_EQ(ShardOf(Cut(bytes, {std::min(cut, bytes.size())})).value(), push.shard);
    }
  }
}

TEST(BulkMessagesTest, AMessageWithoutAHeaderNamesNoShard) {
  EXPECT_EQ(ShardOf(Cut("", {})).value(), 0u);
  EXPECT_EQ(ShardOf(Cut(Bytes("0A 00"), {})).value(), 0u);
  EXPECT_EQ(ShardOf(Cut(Bytes("28 01  0A 02 30 03"), {})).value(), 0u);
}

TEST(BulkMessagesTest, TheShardIsFoundBeforeWhatIsMalformed) {
  EXPECT_EQ(ShardOf(Cut(Bytes("0A 04 98 06 01 30 03  1A 7F"), {})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ShardOf(Cut(Bytes("0A 05 98 06 01 30 03  1A 7F"), {})).value(), 3u);
}

TEST(BulkMessagesTest, MalformedHeadersNameNoShard) {
  for (const char* hex : {"0A", "0A 02 30", "0A 06 30 80 80 80 80 10", "0A 05 35 00 00 00 00",
                          "09 00", "0A 03 12 01 01"}) {
    const std::string bytes = Bytes(hex);
    const absl::Status error = ShardOf(Cut(bytes, {})).status();
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument) << hex;
    EXPECT_EQ(error, RequestError(bytes)) << hex;
  }
  EXPECT_EQ(ShardOf(Cut(Bytes("0A 06 30 80 80 80 80 10"), {})).status().message(),
            "malformed request: field header.shard: out of range");
}

TEST(BulkMessagesTest, TakesNoMoreEntriesThanThereCanBe) {
  BulkRequest request;
  request.ranges.resize(3);
  request.known_versions.resize(3, 1);
  BulkResponse response;
  response.blocks.resize(3);
  const std::string ranges = EncodeBulkRequest(request, 0);
  request.ranges.clear();
  const std::string versions = EncodeBulkRequest(request, 0);
  const std::string blocks = EncodeBulkResponse(response, 0);
  const auto decode = [](const std::string& bytes, auto* message, size_t most, auto decoder) {
    ByteRope rope;
    rope.AppendCopy(bytes);
    ByteCursor cursor(rope);
    return decoder(&cursor, message, most).status();
  };
  EXPECT_EQ(decode(ranges, &request, 3, DecodeBulkRequest), absl::OkStatus());
  EXPECT_EQ(decode(blocks, &response, 3, DecodeBulkResponse), absl::OkStatus());
  EXPECT_EQ(decode(ranges, &request, 2, DecodeBulkRequest),
            absl::InvalidArgumentError(
                "malformed request: field ranges: expected at most 2 entries, found more"));
  EXPECT_LE(request.ranges.size(), 3u);
  EXPECT_EQ(decode(versions, &request, 2, DecodeBulkRequest),
            absl::InvalidArgumentError(
                "malformed request: field known_versions: expected at most 2 entries, found more"));
  EXPECT_EQ(decode(blocks, &response, 2, DecodeBulkResponse),
            absl::InvalidArgumentError(
                "malformed response: field blocks: expected at most 2 entries, found more"));
}

// Two bytes on the wire are 20 in memory.
TEST(BulkMessagesTest, AMillionEmptyRangesAreNotKept) {
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += Bytes("1A 00");
  ByteRope rope;
  rope.AppendOwned(std::move(bytes));
  ByteCursor cursor(rope);
  BulkRequest request;
  EXPECT_FALSE(DecodeBulkRequest(&cursor, &request).ok());
  EXPECT_LE(request.ranges.capacity(), 2 * kMostEntries);
}

}  // namespace
}  // namespace keelson
