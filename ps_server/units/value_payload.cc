#include "ps_server/units/value_payload.h"

#include <utility>

#include "core/wire/value_codec.h"

namespace keelson {
namespace {

// Below this size, a copy costs less than sending a separate piece.
constexpr size_t kSmallBytes = 16 * 1024;
// Up to this size, values that are a message's only piece are copied behind its header.
constexpr size_t kJoinBytes = 64 * 1024;

Fragment InPlace(BlockContentRef content, size_t bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(content->values.data());
  return {data, bytes, std::move(content).IntoPin()};
}

Fragment Encoded(const BlockContent& content, WireFormat format, size_t bytes) {
  auto* data = new uint8_t[bytes];
  EncodeElements(format, content.values.span(), data);
  return {data, bytes, Pin([](void* user) { delete[] static_cast<uint8_t*>(user); }, data)};
}

}  // namespace

void ValuePayload::Add(BlockContentRef content, WireFormat format) {
  const size_t bytes = EncodedBytes(format, content->values.size());
  if (bytes < kSmallBytes) return Gather(*content, format, bytes);
  Close();
  if (format == WireFormat::kFloat32) {
    pieces_.Append(InPlace(std::move(content), bytes));
  } else {
    pieces_.Append(Encoded(*content, format, bytes));
  }
}

void ValuePayload::AddBytes(std::string bytes) {
  if (bytes.size() < kSmallBytes) {
    gathered_ += bytes;
    return;
  }
  Close();
  pieces_.AppendOwned(std::move(bytes));
}

ByteRope ValuePayload::Finish(std::string header) && {
  if (pieces_.empty() && gathered_.size() <= kJoinBytes) header += std::exchange(gathered_, {});
  ByteRope message;
  message.AppendOwned(std::move(header));
  Close();
  message.Append(std::move(pieces_));
  return message;
}

void ValuePayload::Gather(const BlockContent& content, WireFormat format, size_t bytes) {
  const size_t end = gathered_.size();
  gathered_.resize(end + bytes);
  EncodeElements(format, content.values.span(), reinterpret_cast<uint8_t*>(gathered_.data()) + end);
}

void ValuePayload::Close() {
  if (!gathered_.empty()) pieces_.AppendOwned(std::exchange(gathered_, {}));
}

}  // namespace keelson
