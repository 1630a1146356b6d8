#include "core/checkpoint/snapshot_chain.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"

namespace keelson {
namespace {

absl::Status Unusable(const BundleReader& delta, const v1::SnapshotBase& base,
                      const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat(delta.prefix(), ": is a delta on ", ToString(base),
                                               ": ", why.message()));
}

}  // namespace

absl::StatusOr<std::optional<v1::SnapshotBase>> BaseOf(const BundleReader& bundle) {
  const auto& tensors = bundle.contents().tensors;
  for (auto it = tensors.lower_bound(std::string(kShardStatePrefix)); it != tensors.end(); ++it) {
    if (!absl::StartsWith(it->first, kShardStatePrefix)) break;
    ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(it->first));
    ASSIGN_OR_RETURN(const v1::ShardState state,
                     ParseShardState(bytes, bundle.prefix(), it->first));
    if (state.has_base()) return state.base();
    return std::nullopt;
  }
  return std::nullopt;
}

std::string BasePrefix(absl::string_view prefix, const v1::SnapshotBase& base) {
  return JoinPath(DirectoryOf(std::string(prefix)), absl::StrCat("model.ckpt-", base.step()));
}

std::string ToString(const v1::SnapshotBase& base) {
  return absl::StrFormat("the snapshot %016x of step %d", base.snapshot_id(), base.step());
}

absl::StatusOr<std::unique_ptr<BundleReader>> OpenBase(const BundleReader& delta,
                                                       const v1::SnapshotBase& base) {
  const std::string prefix = BasePrefix(delta.prefix(), base);
  absl::StatusOr<std::unique_ptr<BundleReader>> opened =
      BundleReader::Open(prefix, delta.file_system());
  if (!opened.ok()) return Unusable(delta, base, opened.status());
  const absl::StatusOr<std::optional<v1::JobState>> state = ReadJobState(**opened);
  if (!state.ok()) return Unusable(delta, base, state.status());
  v1::SnapshotBase found;
  if (state->has_value()) {
    found.set_step((*state)->global_step());
    found.set_snapshot_id((*state)->snapshot_id());
  }
  if (found.step() != base.step() || found.snapshot_id() != base.snapshot_id()) {
    return Unusable(
        delta, base,
        absl::DataLossError(absl::StrCat("expected it in ", prefix, ", found ", ToString(found))));
  }
  return opened;
}

void AddLink(uint32_t link, absl::Span<const uint64_t> ids, absl::Span<const uint64_t> erased,
             std::vector<ChainedRow>* rows) {
  std::vector<ChainedRow> merged;
  merged.reserve(rows->size() + ids.size());
  size_t next = 0, gone = 0;
  const auto add_up_to = [&](uint64_t id, bool with) {
    for (; next < ids.size() && (ids[next] < id || (with && ids[next] == id)); ++next) {
      merged.push_back({ids[next], link, static_cast<int64_t>(next)});
    }
  };
  for (const ChainedRow& row : *rows) {
    add_up_to(row.id, /*with=*/false);
    if (next < ids.size() && ids[next] == row.id) continue;  // the link's row replaces it
    while (gone < erased.size() && erased[gone] < row.id) ++gone;
    if (gone < erased.size() && erased[gone] == row.id) continue;
    merged.push_back(row);
  }
  add_up_to(~uint64_t{0}, /*with=*/true);
  *rows = std::move(merged);
}

}  // namespace keelson
