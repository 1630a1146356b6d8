#include "core/wire/round_part.h"

#include "core/wire/message_reader.h"
#include "core/wire/message_writer.h"

namespace keelson {
namespace {

// Field numbers of parameter_service.proto.
constexpr int kBlocksOfPart = 1;
constexpr int kPayloadOfPart = 15;

// Both fields, but for the payload's bytes.
constexpr size_t kMostHeadBytes = 11 + 11;

}  // namespace

std::string EncodeRoundPart(const RoundPartHead& head) {
  std::string bytes(kMostHeadBytes, '\0');
  MessageWriter writer(bytes.data());
  writer.Varint(kBlocksOfPart, head.blocks);
  if (head.payload_bytes > 0) writer.BeginBytes(kPayloadOfPart, head.payload_bytes);
  bytes.resize(reinterpret_cast<char*>(writer.position()) - bytes.data());
  return bytes;
}

absl::StatusOr<RoundPartHead> DecodeRoundPart(ByteCursor* cursor) {
  RoundPartHead head;
  ByteCursor ahead = *cursor;
  ReadError error;
  MessageReader reader(&ahead, &error);
  bool at_payload = false;
  while (!at_payload && reader.Next()) {
    switch (reader.field()) {
      case kBlocksOfPart:
        reader.ReadUint32("blocks", &head.blocks);
        break;
      case kPayloadOfPart:
        head.payload_bytes = reader.TakeRest("payload");
        at_payload = true;
        break;
      default:
        reader.Skip();
    }
  }
  if (!error.ok()) return error.ToStatus("RoundPart");
  cursor->Skip(reader.consumed());
  return head;
}

}  // namespace keelson
