// libFuzzer program for the decoder of bulk messages. An input's first byte chooses the kind of
// message and the second how its bytes, all others, are cut into fragments.

#include "core/wire/bulk_messages.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kRequest = 0, kResponse = 1, kNumKinds = 2 };

std::string Encode(const BulkRequest& message, size_t payload_bytes) {
  return EncodeBulkRequest(message, payload_bytes);
}
std::string Encode(const BulkResponse& message, size_t payload_bytes) {
  return EncodeBulkResponse(message, payload_bytes);
}
absl::StatusOr<size_t> Decode(ByteCursor* cursor, BulkRequest* message) {
  return DecodeBulkRequest(cursor, message);
}
absl::StatusOr<size_t> Decode(ByteCursor* cursor, BulkResponse* message) {
  return DecodeBulkResponse(cursor, message);
}

void CheckRange(const BlockRange& range) {
  for (const WireFormat format : {range.format, range.pull_format}) {
    Check(static_cast<int>(format) < kNumWireFormats, "formats exist");
  }
}

void CheckRows(const std::vector<RowSection>& rows) {
  Check(rows.size() <= kMostRowSections, "rows are bounded");
  for (const RowSection& section : rows) {
    Check(static_cast<int>(section.format) < kNumWireFormats, "formats exist");
    Check(static_cast<int>(section.id_coding) < kNumIdCodings, "codings exist");
    Check(static_cast<int>(section.purpose) < kNumRowPurposes, "purposes exist");
  }
}

void CheckContents(const BulkRequest& message) {
  for (const BlockRange& range : message.ranges) CheckRange(range);
  CheckRows(message.rows);
}
void CheckContents(const BulkResponse& message) { CheckRows(message.rows); }

// `encoded` begins with the header of `message`.
void CheckShard(const ByteRope& encoded, const BulkRequest& message) {
  const absl::StatusOr<uint32_t> shard = ShardOf(encoded);
  Check(shard.ok() && *shard == message.shard, "the shard is read as the decoder reads it");
}
void CheckShard(const ByteRope&, const BulkResponse&) {}

template <typename Message>
void CheckRoundTrip(const Message& message, size_t payload_bytes) {
  const std::string header = Encode(message, payload_bytes);
  ByteRope rope = Cut(header, 0);
  rope.AppendOwned(std::string(payload_bytes, 'p'));
  CheckShard(rope, message);
  ByteCursor cursor(rope);
  Message again;
  const absl::StatusOr<size_t> decoded = Decode(&cursor, &again);
  Check(decoded.ok() && *decoded == payload_bytes, "what was encoded can be decoded");
  // Not ==, for a weight may be a NaN.
  Check(Encode(again, payload_bytes) == header, "decoding what was encoded gives the same message");
}

template <typename Message>
void TestDecoder(absl::string_view bytes, size_t step) {
  const ByteRope whole = Cut(bytes, 0);
  ByteCursor whole_cursor(whole);
  Message message;
  const absl::StatusOr<size_t> decoded = Decode(&whole_cursor, &message);

  const ByteRope cut = Cut(bytes, step);
  Check(ShardOf(cut) == ShardOf(whole), "nor does what is read of the header");
  ByteCursor cut_cursor(cut);
  Message cut_message;
  const absl::StatusOr<size_t> cut_decoded = Decode(&cut_cursor, &cut_message);
  Check(cut_decoded.status() == decoded.status(), "errors do not depend on the fragments");
  Check(cut_cursor.remaining() == whole_cursor.remaining(), "nor does the payload's place");
  if (!decoded.ok()) {
    Check(whole_cursor.remaining() == bytes.size(), "an error consumes nothing");
    return;
  }
  Check(Encode(message, *decoded) == Encode(cut_message, *cut_decoded), "nor does the message");
  Check(*decoded == whole_cursor.remaining(), "the payload is all that is left");
  CheckContents(message);
  CheckRoundTrip(message, *decoded);
}

std::string Seed(Kind kind, const std::string& bytes) {
  return std::string(1, kind) + '\3' + bytes;
}

std::vector<std::string> Seeds() {
  BulkRequest pull;
  pull.role = 3;
  pull.task_index = 1;
  pull.incarnation = 77;
  pull.membership_secret = 78;
  pull.shard = 3;
  pull.placement_fingerprint = 88;
  pull.ranges = {{1, 2, 300, WireFormat::kInt8, WireFormat::kBfloat16}, {}};
  BulkRequest push = pull;
  pull.known_versions = {0, 1, 1u << 30};
  push.sequence = 1u << 20;
  push.step = 12345;
  push.pulled_shard_step = -1;
  push.last_part = true;
  BulkRequest staged = push;
  staged.attempt = 300;
  staged.round = 12345;
  staged.weight = 100;
  const RowSection apply = {.table = 1,
                            .first_partition = 128,
                            .num_partitions = 128,
                            .num_ids = 300,
                            .id_coding = IdCoding::kDelta,
                            .id_bytes = 400,
                            .format = WireFormat::kInt8,
                            .purpose = RowPurpose::kApply,
                            .num_rows = 3};
  push.rows = {apply, {}};
  const BulkResponse response = {.shard_step = 1000,
                                 .store_id = 99,
                                 .blocks = {{1, 2, 3}, {}},
                                 .staleness = 200,
                                 .duplicate_blocks = 1,
                                 .credits = 4,
                                 .rows = {apply, {}}};
  return {Seed(kRequest, EncodeBulkRequest(pull, 0)),
          Seed(kRequest, EncodeBulkRequest(push, 8) + "gradient"),
          Seed(kRequest, EncodeBulkRequest(staged, 8) + "gradient"),
          Seed(kResponse, EncodeBulkResponse(response, 6) + "values")};
}

}  // namespace
}  // namespace keelson

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  keelson::WriteSeeds(*argc, *argv, keelson::Seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[0] % keelson::kNumKinds == keelson::kRequest) {
    keelson::TestDecoder<keelson::BulkRequest>(bytes, data[1]);
  } else {
    keelson::TestDecoder<keelson::BulkResponse>(bytes, data[1]);
  }
  return 0;
}
