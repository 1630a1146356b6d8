#include "worker/script/script_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

size_t Elements(const RowRequest::Part& part, const TableSpec& table) {
  return part.distinct * static_cast<size_t>(table.dim);
}

}  // namespace

ScriptRows::ScriptRows(std::vector<TableSpec> tables) : spaces_(std::move(tables)) {}

// ---- What the script asks for.

absl::Status ScriptRows::MakeSpace(ScriptMessageReader* reader, ScriptSocket* script) {
  ASSIGN_OR_RETURN(const uint64_t space, spaces_.MakeAndSend(reader, script));
  came_.erase(space);
  return absl::OkStatus();
}

absl::StatusOr<RowRequest> ScriptRows::Read(ScriptMessageReader* reader) {
  ASSIGN_OR_RETURN(RowRequest request, spaces_.Read(reader));
  came_.erase(request.space);
  return request;
}

absl::Status ScriptRows::SetAhead(ScriptMessageReader* reader) {
  ahead_came_ = false;
  ASSIGN_OR_RETURN(ahead_, Read(reader));
  return absl::OkStatus();
}

// ---- What it gets.

void ScriptRows::Deliver(const RowRequest& request, TableRows* rows) {
  for (const RowRequest::Part& part : request.parts) {
    const absl::Span<const float> values = rows->values()[spaces_.by_name(part.table)];
    std::copy(values.begin(), values.end(), part.values.begin());
  }
  // The space may have been made anew meanwhile.
  if (spaces_.Memory(request.space) == request.memory) came_[request.space] = request;
}

absl::Status ScriptRows::WantAhead(TableRows* rows) const {
  return rows->Want(ahead_.has_value() ? ahead_->ids
                                       : std::make_shared<RowIds>(spaces_.tables().size()));
}

void ScriptRows::DeliverAhead(TableRows* rows) {
  if (!ahead_.has_value()) return;
  Deliver(*ahead_, rows);
  ahead_came_ = true;
}

ScriptMessage ScriptRows::TakeAheadAnswer() {
  const RowRequest request = *std::exchange(ahead_, std::nullopt);
  return RowSpaces::Answer(request, std::exchange(ahead_came_, false));
}

// ---- Gradients.

absl::Status ScriptRows::Offer(absl::Span<const uint64_t> spaces, TableRows* rows) const {
  ASSIGN_OR_RETURN(const std::vector<const RowRequest*> requests, RequestsOf(spaces));
  std::vector<absl::Span<const float>> gradients(spaces_.tables().size());
  if (requests.size() == 1) {
    for (const RowRequest::Part& part : requests.front()->parts) {
      gradients[spaces_.by_name(part.table)] =
          part.gradients.subspan(0, Elements(part, spaces_.tables()[part.table]));
    }
    return rows->OfferOf(requests.front()->ids, gradients);
  }
  auto ids = std::make_shared<RowIds>(spaces_.tables().size());
  std::vector<std::vector<float>> sums(spaces_.tables().size());
  for (size_t t = 0; t < spaces_.tables().size(); ++t) {
    AddUp(t, requests, &(*ids)[spaces_.by_name(t)], &sums[t]);
    gradients[spaces_.by_name(t)] = sums[t];
  }
  return rows->OfferOf(std::move(ids), gradients);
}

absl::StatusOr<std::vector<const RowRequest*>> ScriptRows::RequestsOf(
    absl::Span<const uint64_t> spaces) const {
  std::vector<const RowRequest*> requests;
  for (const uint64_t number : spaces) {
    const auto rows = came_.find(number);
    if (rows == came_.end() || std::count(spaces.begin(), spaces.end(), number) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the script's message: gradients: expected each space once whose rows have "
                       "come, found ",
                       number));
    }
    requests.push_back(&rows->second);
  }
  return requests;
}

void ScriptRows::AddUp(size_t table, absl::Span<const RowRequest* const> requests,
                       std::vector<uint64_t>* ids, std::vector<float>* gradients) const {
  struct Row {
    uint32_t partition;
    uint64_t id;
    const float* gradient;
  };
  const auto dim = static_cast<size_t>(spaces_.tables()[table].dim);
  const uint64_t salt = TableSalt(spaces_.tables()[table].name);
  std::vector<Row> rows;
  for (const RowRequest* const request : requests) {
    const std::vector<uint64_t>& distinct = (*request->ids)[spaces_.by_name(table)];
    for (const RowRequest::Part& part : request->parts) {
      if (part.table != table) continue;
      for (size_t i = 0; i < distinct.size(); ++i) {
        const uint64_t id = distinct[i];
        rows.push_back({RowPartitionOf(MixId(id, salt)), id, part.gradients.data() + i * dim});
      }
    }
  }
  // Stable: the sums do not depend on chance.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.partition != b.partition ? a.partition < b.partition : a.id < b.id;
  });
  for (const Row& row : rows) {
    if (ids->empty() || ids->back() != row.id) {
      ids->push_back(row.id);
      gradients->insert(gradients->end(), row.gradient, row.gradient + dim);
      continue;
    }
    float* const sum = gradients->data() + gradients->size() - dim;
    for (size_t j = 0; j < dim; ++j) sum[j] += row.gradient[j];
  }
}

}  // namespace keelson
