#include "core/wire/bulk_messages.h"

#include "absl/strings/str_cat.h"
#include "core/wire/message_reader.h"
#include "core/wire/message_writer.h"

namespace keelson {
namespace {

// Field numbers of parameter_service.proto and cluster.proto.
constexpr int kRows = 14;
constexpr int kPayload = 15;

namespace request_field {
constexpr int kHeader = 1;
constexpr int kPlacementFingerprint = 2;
constexpr int kRanges = 3;
constexpr int kKnownVersions = 4;
constexpr int kSequence = 5;
constexpr int kStep = 6;
constexpr int kPulledShardStep = 7;
constexpr int kLastPart = 8;
constexpr int kAttempt = 9;
constexpr int kRound = 10;
constexpr int kWeight = 11;
constexpr int kStepsUnderWay = 12;
constexpr int kUnseenPushes = 13;
constexpr int kOrder = 16;
}  // namespace request_field

namespace response_field {
constexpr int kShardStep = 1;
constexpr int kStoreId = 2;
constexpr int kBlocks = 3;
constexpr int kStaleness = 4;
constexpr int kDuplicateBlocks = 5;
constexpr int kCredits = 6;
}  // namespace response_field

// Upper bounds of encoded sizes: all single fields with the payload's tag and size; a range or a
// block; a known version; a row section.
constexpr size_t kFixedBytes = 180;
constexpr size_t kRangeBytes = 2 + 5 * 6;
constexpr size_t kBlockBytes = 2 + 2 * 6 + 11;
constexpr size_t kVersionBytes = 10;
constexpr size_t kRowSectionBytes = 2 + 9 * 6;

void WriteHeader(const BulkRequest& request, MessageWriter* writer) {
  const bool has_task = request.role != 0 || request.task_index != 0;
  if (!has_task && request.incarnation == 0 && request.member_epoch == 0 &&
      request.membership_secret == 0 && request.shard == 0) {
    return;
  }
  uint8_t* const header = writer->BeginMessage(request_field::kHeader);
  if (has_task) {
    uint8_t* const task = writer->BeginMessage(1);
    writer->Varint(1, static_cast<uint64_t>(request.role));
    writer->Varint(2, request.task_index);
    writer->EndMessage(task);
  }
  writer->Fixed64(2, request.incarnation);
  writer->Varint(3, request.member_epoch);
  writer->Fixed64(5, request.membership_secret);
  writer->Varint(6, request.shard);
  writer->EndMessage(header);
}

void WriteRange(const BlockRange& range, MessageWriter* writer) {
  uint8_t* const begin = writer->BeginMessage(request_field::kRanges);
  writer->Varint(1, range.partition);
  writer->Varint(2, range.first_block);
  writer->Varint(3, range.num_blocks);
  writer->Varint(4, static_cast<uint64_t>(range.format));
  writer->Varint(5, static_cast<uint64_t>(range.pull_format));
  writer->Varint(6, range.absent ? 1 : 0);
  writer->EndMessage(begin);
}

void WriteBlock(const BlockHeader& block, MessageWriter* writer) {
  uint8_t* const begin = writer->BeginMessage(response_field::kBlocks);
  writer->Varint(1, block.partition);
  writer->Varint(2, block.block);
  writer->Varint(3, block.version);
  writer->EndMessage(begin);
}

void WriteRows(const std::vector<RowSection>& rows, MessageWriter* writer) {
  for (const RowSection& section : rows) {
    uint8_t* const begin = writer->BeginMessage(kRows);
    writer->Varint(1, section.table);
    writer->Varint(2, section.first_partition);
    writer->Varint(3, section.num_partitions);
    writer->Varint(4, section.num_ids);
    writer->Varint(5, static_cast<uint64_t>(section.id_coding));
    writer->Varint(6, section.id_bytes);
    writer->Varint(7, static_cast<uint64_t>(section.format));
    writer->Varint(8, static_cast<uint64_t>(section.purpose));
    writer->Varint(9, section.num_rows);
    writer->EndMessage(begin);
  }
}

void ReadTask(MessageReader reader, BulkRequest* request) {
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        reader.ReadEnum("header.task.role", &request->role);
        break;
      case 2:
        reader.ReadUint32("header.task.index", &request->task_index);
        break;
      default:
        reader.Skip();
    }
  }
}

void ReadHeader(MessageReader reader, BulkRequest* request) {
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        ReadTask(reader.Message("header.task"), request);
        break;
      case 2:
        reader.ReadFixed64("header.incarnation", &request->incarnation);
        break;
      case 3:
        reader.ReadUint64("header.member_epoch", &request->member_epoch);
        break;
      case 5:
        reader.ReadFixed64("header.membership_secret", &request->membership_secret);
        break;
      case 6:
        reader.ReadUint32("header.shard", &request->shard);
        break;
      default:
        reader.Skip();
    }
  }
}

void ReadRange(MessageReader reader, BlockRange* range) {
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        reader.ReadUint32("ranges.partition", &range->partition);
        break;
      case 2:
        reader.ReadUint32("ranges.first_block", &range->first_block);
        break;
      case 3:
        reader.ReadUint32("ranges.num_blocks", &range->num_blocks);
        break;
      case 4:
        reader.ReadFormat("ranges.format", &range->format);
        break;
      case 5:
        reader.ReadFormat("ranges.pull_format", &range->pull_format);
        break;
      case 6:
        reader.ReadBool("ranges.absent", &range->absent);
        break;
      default:
        reader.Skip();
    }
  }
}

void ReadBlock(MessageReader reader, BlockHeader* block) {
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        reader.ReadUint32("blocks.partition", &block->partition);
        break;
      case 2:
        reader.ReadUint32("blocks.block", &block->block);
        break;
      case 3:
        reader.ReadUint64("blocks.version", &block->version);
        break;
      default:
        reader.Skip();
    }
  }
}

void ReadRowSection(MessageReader reader, RowSection* section) {
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        reader.ReadUint32("rows.table", &section->table);
        break;
      case 2:
        reader.ReadUint32("rows.first_partition", &section->first_partition);
        break;
      case 3:
        reader.ReadUint32("rows.num_partitions", &section->num_partitions);
        break;
      case 4:
        reader.ReadUint32("rows.num_ids", &section->num_ids);
        break;
      case 5:
        reader.ReadKnown("rows.id_coding", kNumIdCodings, &section->id_coding);
        break;
      case 6:
        reader.ReadUint32("rows.id_bytes", &section->id_bytes);
        break;
      case 7:
        reader.ReadFormat("rows.format", &section->format);
        break;
      case 8:
        reader.ReadKnown("rows.purpose", kNumRowPurposes, &section->purpose);
        break;
      case 9:
        reader.ReadUint32("rows.num_rows", &section->num_rows);
        break;
      default:
        reader.Skip();
    }
  }
}

void ReadField(MessageReader* reader, size_t most_entries, BulkRequest* request) {
  switch (reader->field()) {
    case request_field::kHeader:
      return ReadHeader(reader->Message("header"), request);
    case request_field::kPlacementFingerprint:
      return reader->ReadFixed64("placement_fingerprint", &request->placement_fingerprint);
    case request_field::kRanges:
      return ReadRange(reader->Message("ranges"), &request->ranges.emplace_back());
    case request_field::kKnownVersions:
      return reader->AppendUint64s("known_versions", most_entries, &request->known_versions);
    case request_field::kSequence:
      return reader->ReadUint64("sequence", &request->sequence);
    case request_field::kStep:
      return reader->ReadInt64("step", &request->step);
    case request_field::kPulledShardStep:
      return reader->ReadInt64("pulled_shard_step", &request->pulled_shard_step);
    case request_field::kLastPart:
      return reader->ReadBool("last_part", &request->last_part);
    case request_field::kAttempt:
      return reader->ReadUint32("attempt", &request->attempt);
    case request_field::kRound:
      return reader->ReadInt64("round", &request->round);
    case request_field::kWeight:
      return reader->ReadFloat("weight", &request->weight);
    case request_field::kStepsUnderWay:
      return reader->ReadUint32("steps_under_way", &request->steps_under_way);
    case request_field::kUnseenPushes:
      return reader->ReadUint32("unseen_pushes", &request->unseen_pushes);
    case request_field::kOrder:
      return reader->ReadUint32("order", &request->order);
    case kRows:
      return ReadRowSection(reader->Message("rows"), &request->rows.emplace_back());
    default:
      return reader->Skip();
  }
}

void ReadField(MessageReader* reader, size_t, BulkResponse* response) {
  switch (reader->field()) {
    case response_field::kShardStep:
      return reader->ReadInt64("shard_step", &response->shard_step);
    case response_field::kStoreId:
      return reader->ReadFixed64("store_id", &response->store_id);
    case response_field::kBlocks:
      return ReadBlock(reader->Message("blocks"), &response->blocks.emplace_back());
    case response_field::kStaleness:
      return reader->ReadInt64("staleness", &response->staleness);
    case response_field::kDuplicateBlocks:
      return reader->ReadUint32("duplicate_blocks", &response->duplicate_blocks);
    case response_field::kCredits:
      return reader->ReadUint32("credits", &response->credits);
    case kRows:
      return ReadRowSection(reader->Message("rows"), &response->rows.emplace_back());
    default:
      return reader->Skip();
  }
}

// A repeated field with more entries than it may have; an empty name: none.
struct TooMany {
  absl::string_view field;
  size_t most = 0;
};

TooMany FindTooMany(const BulkRequest& request, size_t most_entries) {
  if (request.ranges.size() > most_entries) return {"ranges", most_entries};
  if (request.known_versions.size() > most_entries) return {"known_versions", most_entries};
  if (request.rows.size() > kMostRowSections) return {"rows", kMostRowSections};
  return {};
}

TooMany FindTooMany(const BulkResponse& response, size_t most_entries) {
  if (response.blocks.size() > most_entries) return {"blocks", most_entries};
  if (response.rows.size() > kMostRowSections) return {"rows", kMostRowSections};
  return {};
}

template <typename Message>
absl::StatusOr<size_t> Decode(const char* name, size_t most_entries, ByteCursor* cursor,
                              Message* message) {
  ByteCursor ahead = *cursor;
  ReadError error;
  MessageReader reader(&ahead, &error);
  size_t payload_bytes = 0;
  bool at_payload = false;
  while (!at_payload && reader.Next()) {
    at_payload = reader.field() == kPayload;
    if (at_payload) {
      payload_bytes = reader.TakeRest("payload");
    } else {
      ReadField(&reader, most_entries, message);
      const TooMany many = FindTooMany(*message, most_entries);
      if (!many.field.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("malformed ", name, ": field ", many.field,
                                                       ": expected at most ", many.most,
                                                       " entries, found more"));
      }
    }
  }
  if (!error.ok()) return error.ToStatus(name);
  cursor->Skip(reader.consumed());
  return payload_bytes;
}

// `*message` with everything at its default, but with its memory.
void Reset(BulkRequest* message) {
  std::vector<BlockRange> ranges = std::move(message->ranges);
  std::vector<uint64_t> known_versions = std::move(message->known_versions);
  std::vector<RowSection> rows = std::move(message->rows);
  ranges.clear();
  known_versions.clear();
  rows.clear();
  *message = {.ranges = std::move(ranges),
              .known_versions = std::move(known_versions),
              .rows = std::move(rows)};
}

void Reset(BulkResponse* message) {
  std::vector<BlockHeader> blocks = std::move(message->blocks);
  std::vector<RowSection> rows = std::move(message->rows);
  blocks.clear();
  rows.clear();
  *message = {.blocks = std::move(blocks), .rows = std::move(rows)};
}

// Writes into a string of `max_bytes` at first.
template <typename Write>
std::string Encoded(size_t max_bytes, size_t payload_bytes, Write write) {
  std::string bytes(max_bytes, '\0');
  MessageWriter writer(bytes.data());
  write(&writer);
  if (payload_bytes > 0) writer.BeginBytes(kPayload, payload_bytes);
  bytes.resize(reinterpret_cast<char*>(writer.position()) - bytes.data());
  return bytes;
}

}  // namespace

absl::string_view BulkMethodName(BulkMethod method) {
  switch (method) {
    case BulkMethod::kPull:
      return "Pull";
    case BulkMethod::kPush:
      return "Push";
    case BulkMethod::kPushPull:
      return "PushPull";
  }
  return "unknown";
}

std::string EncodeBulkRequest(const BulkRequest& request, size_t payload_bytes) {
  const size_t max_bytes = kFixedBytes + request.ranges.size() * kRangeBytes +
                           request.known_versions.size() * kVersionBytes +
                           request.rows.size() * kRowSectionBytes;
  return Encoded(max_bytes, payload_bytes, [&request](MessageWriter* writer) {
    WriteHeader(request, writer);
    writer->Fixed64(request_field::kPlacementFingerprint, request.placement_fingerprint);
    for (const BlockRange& range : request.ranges) WriteRange(range, writer);
    writer->PackedVarints(request_field::kKnownVersions, request.known_versions);
    writer->Varint(request_field::kSequence, request.sequence);
    writer->Varint(request_field::kStep, static_cast<uint64_t>(request.step));
    writer->Varint(request_field::kPulledShardStep,
                   static_cast<uint64_t>(request.pulled_shard_step));
    writer->Varint(request_field::kLastPart, request.last_part ? 1 : 0);
    writer->Varint(request_field::kAttempt, request.attempt);
    writer->Varint(request_field::kRound, static_cast<uint64_t>(request.round));
    writer->Float(request_field::kWeight, request.weight);
    writer->Varint(request_field::kStepsUnderWay, request.steps_under_way);
    writer->Varint(request_field::kUnseenPushes, request.unseen_pushes);
    WriteRows(request.rows, writer);
    writer->Varint(request_field::kOrder, request.order);
  });
}

std::string EncodeBulkResponse(const BulkResponse& response, size_t payload_bytes) {
  const size_t max_bytes =
      kFixedBytes + response.blocks.size() * kBlockBytes + response.rows.size() * kRowSectionBytes;
  return Encoded(max_bytes, payload_bytes, [&response](MessageWriter* writer) {
    writer->Varint(response_field::kShardStep, static_cast<uint64_t>(response.shard_step));
    writer->Fixed64(response_field::kStoreId, response.store_id);
    for (const BlockHeader& block : response.blocks) WriteBlock(block, writer);
    writer->Varint(response_field::kStaleness, static_cast<uint64_t>(response.staleness));
    writer->Varint(response_field::kDuplicateBlocks, response.duplicate_blocks);
    writer->Varint(response_field::kCredits, response.credits);
    WriteRows(response.rows, writer);
  });
}

absl::StatusOr<size_t> DecodeBulkRequest(ByteCursor* cursor, BulkRequest* request,
                                         size_t most_entries) {
  Reset(request);
  return Decode("request", most_entries, cursor, request);
}

absl::StatusOr<size_t> DecodeBulkResponse(ByteCursor* cursor, BulkResponse* response,
                                          size_t most_entries) {
  Reset(response);
  return Decode("response", most_entries, cursor, response);
}

absl::StatusOr<uint32_t> ShardOf(const ByteRope& request) {
  ByteCursor cursor(request);
  ReadError error;
  MessageReader reader(&cursor, &error);
  BulkRequest read;
  if (reader.Next() && reader.field() == request_field::kHeader) {
    ReadHeader(reader.Message("header"), &read);
  }
  if (!error.ok()) return error.ToStatus("request");
  return read.shard;
}

}  // namespace keelson
