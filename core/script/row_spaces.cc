#include "core/script/row_spaces.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr size_t kRowAlignment = 64;
// So that no product of what a message says overflows.
constexpr uint64_t kMostSpaceBytes = uint64_t{1} << 44;

absl::Status Unexpected(absl::string_view what, absl::string_view expected, uint64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("the script's message: ", what, ": expected ", expected, ", found ", found));
}

// The next array of a space; empty behind its end.
template <typename T>
absl::Span<T> Take(const SealedMemory& memory, size_t count, size_t* at) {
  const size_t begin = (*at + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  *at = begin + count * sizeof(T);
  if (*at > memory.bytes()) return {};
  return {reinterpret_cast<T*>(memory.data() + begin), count};
}

}  // namespace

RowSpaces::RowSpaces(std::vector<TableSpec> tables) : tables_(std::move(tables)) {
  std::vector<size_t> sorted(tables_.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(),
            [this](size_t a, size_t b) { return tables_[a].name < tables_[b].name; });
  by_name_.resize(tables_.size());
  for (size_t i = 0; i < sorted.size(); ++i) by_name_[sorted[i]] = i;
}

absl::StatusOr<std::shared_ptr<const SealedMemory>> RowSpaces::Make(uint64_t space,
                                                                    uint64_t bytes) {
  if (space >= kMostSpaces) {
    return Unexpected("space", absl::StrCat("less than ", kMostSpaces), space);
  }
  if (bytes == 0 || bytes > kMostSpaceBytes) {
    return Unexpected("bytes of a space", absl::StrCat("1 to ", kMostSpaceBytes), bytes);
  }
  spaces_.erase(space);
  ASSIGN_OR_RETURN(std::shared_ptr<const SealedMemory> memory,
                   SealedMemory::Create(bytes, SealedMemory::Touch::kLater));
  spaces_[space] = memory;
  return memory;
}

absl::StatusOr<uint64_t> RowSpaces::MakeAndSend(ScriptMessageReader* reader, ScriptSocket* script) {
  const uint64_t space = reader->Number();
  ASSIGN_OR_RETURN(const std::shared_ptr<const SealedMemory> memory, Make(space, reader->Number()));
  RETURN_IF_ERROR(script->Send(ScriptMessageWriter(ScriptMessageKind::kRowMemory)
                                   .Number(space)
                                   .Number(uint64_t{memory->bytes()})
                                   .message(),
                               memory->fd()));
  return space;
}

std::shared_ptr<const SealedMemory> RowSpaces::Memory(uint64_t space) const {
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? nullptr : found->second;
}

absl::StatusOr<RowRequest> RowSpaces::Read(ScriptMessageReader* reader) {
  RowRequest request;
  request.space = reader->Number();
  request.memory = Memory(request.space);
  if (request.memory == nullptr) return Unexpected("space", "one that was made", request.space);
  batch_.features.clear();
  positions_.clear();
  size_t at = 0;
  while (reader->ok() && !reader->AtEnd()) {
    ASSIGN_OR_RETURN(const RowRequest::Part part, ReadPart(*request.memory, reader, &at));
    if (std::any_of(request.parts.begin(), request.parts.end(),
                    [&](const RowRequest::Part& other) { return other.table == part.table; })) {
      return Unexpected("rows", "each table once", part.table);
    }
    request.parts.push_back(part);
  }
  Index(&request);
  return request;
}

absl::StatusOr<RowRequest::Part> RowSpaces::ReadPart(const SealedMemory& memory,
                                                     ScriptMessageReader* reader, size_t* at) {
  const uint64_t number = reader->Number();
  const uint64_t dim = reader->Number();
  const uint64_t count = reader->Number();
  if (number >= tables_.size()) {
    return Unexpected("table", absl::StrCat("less than ", tables_.size()), number);
  }
  const TableSpec& table = tables_[number];
  if (dim != static_cast<uint64_t>(table.dim)) {
    return Unexpected(absl::StrCat("rows of table \"", table.name, "\""),
                      absl::StrCat("dim ", table.dim), dim);
  }
  const uint64_t row_bytes = sizeof(uint64_t) + sizeof(int32_t) + 2 * dim * sizeof(float);
  if (count > memory.bytes() / row_bytes) {
    return Unexpected(absl::StrCat("ids of table \"", table.name, "\""),
                      absl::StrCat("at most ", memory.bytes() / row_bytes, " in this space"),
                      count);
  }
  const absl::Span<const uint64_t> ids = Take<uint64_t>(memory, count, at);
  positions_.push_back(Take<int32_t>(memory, count, at));
  RowRequest::Part part;
  part.table = number;
  part.values = Take<float>(memory, count * dim, at);
  part.gradients = Take<float>(memory, count * dim, at);
  if (*at > memory.bytes())
    return Unexpected("bytes of a space", absl::StrCat(*at), memory.bytes());
  // A copy: the script may write to its memory at any time.
  batch_.features.emplace_back().ids.assign(ids.begin(), ids.end());
  return part;
}

void RowSpaces::Index(RowRequest* request) {
  std::vector<size_t> tables;
  for (const RowRequest::Part& part : request->parts) tables.push_back(part.table);
  if (!indexer_.has_value() || tables != indexed_) {
    std::vector<TableFeatures> features;
    for (size_t i = 0; i < tables.size(); ++i) {
      features.push_back({TableSalt(tables_[tables[i]].name), {i}});
    }
    indexed_ = tables;
    indexer_.emplace(std::move(features));
  }
  indexer_->Index(&batch_);
  auto ids = std::make_shared<RowIds>(tables_.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    BatchRows& rows = batch_.rows[i];
    request->parts[i].distinct = rows.ids.size();
    std::copy(rows.positions[i].begin(), rows.positions[i].end(), positions_[i].begin());
    (*ids)[by_name_[tables[i]]] = std::move(rows.ids);
  }
  request->ids = std::move(ids);
}

ScriptMessage RowSpaces::Answer(const RowRequest& request, bool came) {
  ScriptMessageWriter writer(ScriptMessageKind::kRowsReady);
  writer.Number(request.space).Number(uint64_t{came});
  for (const RowRequest::Part& part : request.parts) {
    writer.Number(static_cast<uint64_t>(part.distinct));
  }
  return writer.message();
}

}  // namespace keelson
