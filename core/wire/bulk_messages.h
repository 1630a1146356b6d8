// The messages of the bulk calls (Pull, Push, PushPull of parameter_service.proto) as plain
// structs, and their hand-written wire form: everything but the payload, which is the last field
// and is neither copied nor touched here. The bytes are what protobuf writes for the same message,
// so any client or server in any language can be at the other end.
#ifndef KEELSON_CORE_WIRE_BULK_MESSAGES_H_
#define KEELSON_CORE_WIRE_BULK_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"

namespace keelson {

// The largest payload that senders use, in wire bytes: four default blocks of float32 and some
// small ones. A block is never divided, so a message holds at least one; nor is what a message has
// of a partition of the tables' rows.
inline constexpr size_t kBulkPayloadBytes = (4 << 20) + (64 << 10);

enum class BulkMethod : uint8_t { kPull = 0, kPush = 1, kPushPull = 2 };
inline constexpr int kNumBulkMethods = 3;

// "Pull", "Push", "PushPull".
absl::string_view BulkMethodName(BulkMethod method);

// v1::BlockRange.
struct BlockRange {
  uint32_t partition = 0;
  uint32_t first_block = 0;
  uint32_t num_blocks = 0;
  // Push: the format of the gradients in the payload. Pull: that of the requested values.
  WireFormat format = WireFormat::kFloat32;
  // PushPull: the format of the requested values.
  WireFormat pull_format = WireFormat::kFloat32;
  // Push: the blocks have no gradient, and the payload nothing of them.
  bool absent = false;

  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// v1::BlockHeader.
struct BlockHeader {
  uint32_t partition = 0;
  uint32_t block = 0;
  uint64_t version = 0;

  friend bool operator==(const BlockHeader&, const BlockHeader&) = default;
};

// v1::RowSection::Purpose.
enum class RowPurpose : uint8_t { kRead = 0, kApply = 1 };
inline constexpr int kNumRowPurposes = 2;

// v1::RowSection::IdCoding.
enum class IdCoding : uint8_t { kRaw64 = 0, kRaw32 = 1, kDelta = 2 };
inline constexpr int kNumIdCodings = 3;

// v1::RowSection, which says what its bytes in the payload are.
struct RowSection {
  uint32_t table = 0;
  uint32_t first_partition = 0;
  uint32_t num_partitions = 0;
  uint32_t num_ids = 0;
  IdCoding id_coding = IdCoding::kRaw64;  // requests
  uint32_t id_bytes = 0;                  // requests
  WireFormat format = WireFormat::kFloat32;
  RowPurpose purpose = RowPurpose::kRead;
  uint32_t num_rows = 0;  // responses

  friend bool operator==(const RowSection&, const RowSection&) = default;
};

// The most sections of a message: two for each of 4096 tables.
inline constexpr size_t kMostRowSections = 8192;

// v1::PullRequest and v1::PushRequest, which number their fields alike; what a message does not
// have keeps its default.
struct BulkRequest {
  int role = 0;  // v1::Role
  uint32_t task_index = 0;
  uint64_t incarnation = 0;
  uint64_t member_epoch = 0;  // v1::RequestHeader
  uint64_t membership_secret = 0;
  uint32_t shard = 0;  // the called shard's number plus 1; 0: the one that the process hosts
  uint64_t placement_fingerprint = 0;
  std::vector<BlockRange> ranges;
  std::vector<uint64_t> known_versions;  // Pull
  uint64_t sequence = 0;                 // Push, and the rest
  int64_t step = 0;
  int64_t pulled_shard_step = 0;
  bool last_part = false;
  uint32_t attempt = 0;  // 0: applied at once; otherwise added up for `round`
  int64_t round = 0;
  float weight = 0;
  uint32_t steps_under_way = 0;
  uint32_t unseen_pushes = 0;
  std::vector<RowSection> rows;
  uint32_t order = 0;  // with an attempt: the place among the round's gradients; 0: none

  friend bool operator==(const BulkRequest&, const BulkRequest&) = default;
};

// v1::PullResponse, v1::PushResponse and v1::PushPullResponse, likewise.
struct BulkResponse {
  int64_t shard_step = 0;
  uint64_t store_id = 0;
  std::vector<BlockHeader> blocks;  // Pull, PushPull
  int64_t staleness = 0;            // Push, PushPull
  uint32_t duplicate_blocks = 0;
  uint32_t credits = 0;
  std::vector<RowSection> rows;  // Pull, PushPull

  friend bool operator==(const BulkResponse&, const BulkResponse&) = default;
};

// The message up to its payload, whose `payload_bytes` bytes the caller appends; without a payload
// (0) the whole message. Fields with their default value are left out, as protobuf does.
std::string EncodeBulkRequest(const BulkRequest& request, size_t payload_bytes);
std::string EncodeBulkResponse(const BulkResponse& response, size_t payload_bytes);

// The most entries of a repeated field that a reader takes unless it knows better. An entry needs
// two bytes on the wire and up to 20 in memory.
inline constexpr size_t kMostEntries = 1 << 18;

// Reads a message and leaves the cursor at its payload; returns the payload's size. Unknown fields
// are skipped. INVALID_ARGUMENT, with the field: truncated, a wire type that the field cannot have,
// a number out of its range, a format, coding or purpose that does not exist, a payload that is
// longer than what is left, anything after the payload (legal in protobuf, but no writer does it),
// more than `most_entries` ranges, known versions or blocks, or more than kMostRowSections rows.
// What rows say of the payload is not checked here.
absl::StatusOr<size_t> DecodeBulkRequest(ByteCursor* cursor, BulkRequest* request,
                                         size_t most_entries = kMostEntries);
absl::StatusOr<size_t> DecodeBulkResponse(ByteCursor* cursor, BulkResponse* response,
                                          size_t most_entries = kMostEntries);

// BulkRequest::shard of a request that begins with its header, as all writers' do; 0 for one that
// begins otherwise. Nothing behind the header is read. INVALID_ARGUMENT: DecodeBulkRequest would
// find the same error in the header.
absl::StatusOr<uint32_t> ShardOf(const ByteRope& request);

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_BULK_MESSAGES_H_
