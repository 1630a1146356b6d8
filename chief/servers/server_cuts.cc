#include "chief/servers/server_cuts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// How long a cut waits for the round that is being committed.
constexpr absl::Duration kCutPatience = absl::Seconds(10);

}  // namespace

absl::StatusOr<ServerCuts::Cut> ServerCuts::Prepare(absl::FunctionRef<void()> begin,
                                                    const Changes& changes) {
  Cut cut;
  // 0 stands for no cut.
  while (cut.id == 0) cut.id = RandomId();
  std::vector<v1::PrepareCutResponse> cuts(calls_->size());
  v1::PrepareCutRequest request;
  *request.mutable_header() = calls_->Header();
  request.set_cut_id(cut.id);
  request.set_keep_changes(changes.keep);
  request.set_base_cut(changes.base);
  RETURN_IF_ERROR(rounds_->WithoutRounds(kCutPatience, [&]() -> absl::Status {
    begin();
    for (size_t s = 0; s < calls_->size(); ++s) calls_->contacts().NoteCut(s);
    RETURN_IF_ERROR(calls_->ForEach([&](size_t s) {
      v1::PrepareCutRequest addressed = request;
      addressed.set_store_id(calls_->contacts().store_id(s));
      return calls_->service(s)->PrepareCut(addressed, &cuts[s]);
    }));
    return CheckEqual(cuts);
  }));
  cut.committed_round = cuts.front().committed_round();
  RETURN_IF_ERROR(PlaceRows(cuts, &cut));
  return cut;
}

absl::Status ServerCuts::PlaceRows(const std::vector<v1::PrepareCutResponse>& cuts,
                                   Cut* cut) const {
  const int tables = cuts.front().table_rows_size();
  bool delta = tables > 0;
  for (size_t s = 0; s < cuts.size(); ++s) {
    if (cuts[s].table_rows_size() != tables) {
      return calls_->Named(s,
                           absl::InternalError(absl::StrCat("expected a cut of ", tables,
                                                            " tables as at other servers, found ",
                                                            cuts[s].table_rows_size())));
    }
    delta = delta && cuts[s].changes_size() == tables;
  }
  cut->tables.assign(cuts.size(), std::vector<v1::TableRows>(static_cast<size_t>(tables)));
  if (delta) cut->changes = cut->tables;
  for (int t = 0; t < tables; ++t) {
    const auto place = [](int64_t rows, int64_t* end) { return std::exchange(*end, *end + rows); };
    int64_t rows = 0, changed = 0, erased = 0;
    for (size_t s = 0; s < cuts.size(); ++s) {
      const auto at = static_cast<size_t>(t);
      cut->tables[s][at].set_first_row(place(cuts[s].table_rows(t), &rows));
      if (!delta) continue;
      cut->changes[s][at].set_first_row(place(cuts[s].changes(t).rows(), &changed));
      cut->changes[s][at].set_first_erased(place(cuts[s].changes(t).erased(), &erased));
    }
    for (std::vector<v1::TableRows>& of_server : cut->tables) {
      of_server[static_cast<size_t>(t)].set_total_rows(rows);
    }
    for (std::vector<v1::TableRows>& of_server : cut->changes) {
      of_server[static_cast<size_t>(t)].set_total_rows(changed);
      of_server[static_cast<size_t>(t)].set_total_erased(erased);
    }
    cut->rows.all += rows;
    cut->rows.changed += changed;
  }
  return absl::OkStatus();
}

absl::Status ServerCuts::CheckEqual(const std::vector<v1::PrepareCutResponse>& cuts) {
  int64_t newest = -1;
  for (const v1::PrepareCutResponse& cut : cuts) newest = std::max(newest, cut.committed_round());
  absl::Status unequal;
  for (size_t s = 0; s < cuts.size(); ++s) {
    if (cuts[s].committed_round() == newest) continue;
    unequal.Update(absl::UnavailableError(
        absl::StrCat(calls_->name(s), ": expected a cut of round ", newest,
                     " as at other servers, found ", cuts[s].committed_round())));
    rounds_->LoseAt(s, {newest}, "it was not committed there", absl::ZeroDuration(), *stop_)
        .IgnoreError();  // the next cut tells
  }
  return unequal;
}

absl::StatusOr<ServerCuts::Written> ServerCuts::Write(const Cut& cut, int64_t step,
                                                      size_t num_data_shards,
                                                      const std::optional<v1::SnapshotBase>& base) {
  const auto& tables = base.has_value() ? cut.changes : cut.tables;
  std::vector<v1::WriteSnapshotResponse> responses(calls_->size());
  RETURN_IF_ERROR(calls_->ForEach([&](size_t s) {
    v1::WriteSnapshotRequest request;
    *request.mutable_header() = calls_->Header();
    request.set_step(step);
    request.set_data_shard(static_cast<uint32_t>(s));
    request.set_num_data_shards(static_cast<uint32_t>(num_data_shards));
    request.set_cut_id(cut.id);
    if (!tables.empty()) request.mutable_tables()->Add(tables[s].begin(), tables[s].end());
    if (base.has_value()) *request.mutable_base() = *base;
    return storage_->Write(calls_->service(s), request, &responses[s]);
  }));
  Written written;
  for (v1::WriteSnapshotResponse& response : responses) {
    written.bytes += response.bytes_written();
    written.longest_cut_microseconds =
        std::max(written.longest_cut_microseconds, response.cut_microseconds());
    for (auto& entry : *response.mutable_entries()) {
      written.entries.push_back(
          {std::move(*entry.mutable_key()), std::move(*entry.mutable_entry())});
    }
  }
  return written;
}

}  // namespace keelson
