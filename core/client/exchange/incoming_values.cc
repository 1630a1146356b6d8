#include "core/client/exchange/incoming_values.h"

#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

absl::Status Malformed(absl::string_view what) { return absl::InternalError(what); }

// Returns the position of the header's block in the plan. The search starts at `position`, since
// headers come in the requested order.
absl::StatusOr<size_t> Find(const PlannedMessage& plan, const BlockHeader& header,
                            size_t position) {
  const auto& blocks = plan.blocks;
  while (position < blocks.size() && (blocks[position].partition != header.partition ||
                                      blocks[position].block != header.block)) {
    ++position;
  }
  if (position == blocks.size()) {
    return Malformed(absl::StrCat("block ", header.block, " of partition ", header.partition,
                                  " was not asked for, or stands in another order"));
  }
  return position;
}

absl::Status CheckAnswer(const PlannedMessage& plan, const BulkResponse& answer, bool whole,
                         size_t payload_bytes, absl::Span<const uint64_t> known_versions) {
  size_t position = 0, bytes = 0;
  const auto skip_to = [&](size_t next) {
    for (; position < next; ++position) {
      if (whole || known_versions[position] == 0) return false;
    }
    return true;
  };
  for (const BlockHeader& header : answer.blocks) {
    ASSIGN_OR_RETURN(const size_t found, Find(plan, header, position));
    if (!skip_to(found)) return Malformed("a block that the caller does not have is missing");
    position = found + 1;
    bytes += PullBytes(plan.blocks[found]);
  }
  if (!skip_to(plan.blocks.size())) {
    return Malformed("a block that the caller does not have is missing");
  }
  if (bytes > payload_bytes) {
    return Malformed(absl::StrCat("payload shorter than its blocks: expected ", bytes,
                                  " bytes, found ", payload_bytes));
  }
  if (bytes < payload_bytes) {
    return Malformed(absl::StrCat(payload_bytes - bytes, " bytes beyond its blocks"));
  }
  return absl::OkStatus();
}

// Fills `to`, for which the cursor has enough bytes; an element may lie across the border of two
// fragments.
void TakeElements(WireFormat format, ByteCursor* cursor, absl::Span<float> to) {
  if (format == WireFormat::kFloat32) {
    cursor->Read(to.data(), to.size() * sizeof(float));
    return;
  }
  const size_t width = ElementBytes(format);
  while (!to.empty()) {
    const absl::Span<const uint8_t> piece = cursor->Next(to.size() * width);
    const size_t whole = piece.size() / width;
    DecodeElements(format, piece.data(), to.first(whole));
    to.remove_prefix(whole);
    const size_t rest = piece.size() - whole * width;
    if (rest == 0) continue;
    uint8_t cut[sizeof(float)];
    std::memcpy(cut, piece.data() + whole * width, rest);
    cursor->Read(cut + rest, width - rest);
    DecodeElements(format, cut, to.first(1));
    to.remove_prefix(1);
  }
}

void TakeBlock(const PlannedBlock& block, ByteCursor* cursor, const ParameterArrays& values) {
  const size_t v = block.variable;
  if (values.elements.empty()) {
    cursor->Read(values.bytes[v].data() + PullOffset(block), PullBytes(block));
    return;
  }
  TakeElements(block.pull, cursor,
               values.elements[v].subspan(block.first_element, block.num_elements));
}

}  // namespace

absl::Status TakeValues(const PlannedMessage& plan, const BulkResponse& answer, bool whole,
                        size_t payload_bytes, ByteCursor* cursor, const ParameterArrays& values,
                        std::vector<uint64_t>* known_versions) {
  RETURN_IF_ERROR(CheckAnswer(plan, answer, whole, payload_bytes, *known_versions));
  size_t position = 0;
  for (const BlockHeader& header : answer.blocks) {
    ASSIGN_OR_RETURN(position, Find(plan, header, position));
    TakeBlock(plan.blocks[position], cursor, values);
    (*known_versions)[position] = header.version;
    ++position;
  }
  return absl::OkStatus();
}

}  // namespace keelson
