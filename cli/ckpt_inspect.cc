#include "cli/ckpt_inspect.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "cli/ckpt_tables.h"
#include "cli/element.h"
#include "cli/mode_text.h"
#include "cli/snapshot_check.h"
#include "cli/text_table.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/snapshot_chain.h"
#include "core/config/train_config.h"
#include "core/tensor_files/keelson_state.h"
#include "core/tensor_files/snapshot_name.h"
#include "core/tensor_files/tensor_names.h"

namespace keelson {
namespace {

// Slices of a tensor that `show` lists; a count stands for the rest.
constexpr size_t kShownSlices = 4;

// Bytes of all files of a snapshot; those that cannot be opened count 0.
int64_t BytesOnDisk(const std::string& prefix) {
  const std::string directory = DirectoryOf(prefix);
  const std::string index = BaseName(IndexPath(prefix));
  const std::string data = absl::StrCat(BaseName(prefix), ".data-");
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  int64_t bytes = 0;
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (name != index && !absl::StartsWith(name, data)) continue;
    const auto file = FileSystem::Real()->OpenForRead(JoinPath(directory, name));
    if (file.ok()) bytes += static_cast<int64_t>((*file)->size());
  }
  return bytes;
}

// "whole", "delta on 100"; of a snapshot that cannot be read "-".
std::string KindText(const absl::StatusOr<std::unique_ptr<BundleReader>>& bundle) {
  if (!bundle.ok()) return "-";
  const absl::StatusOr<std::optional<v1::SnapshotBase>> base = BaseOf(**bundle);
  if (!base.ok()) return "-";
  return base->has_value() ? absl::StrCat("delta on ", (*base)->step()) : "whole";
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone());
}

int64_t StoredBytes(const StoredTensor& tensor) {
  int64_t bytes = 0;
  for (const StoredSlice& slice : tensor.slices) bytes += static_cast<int64_t>(slice.size);
  return bytes;
}

// "file 0 at 1024", "file 0 at 0 [0,392:-], file 1 at 0 [392,392:-]": slices as start,length.
std::string PlaceText(const StoredTensor& tensor) {
  std::vector<std::string> places;
  for (const StoredSlice& slice : tensor.slices) {
    std::string place = absl::StrCat("file ", slice.data_shard, " at ", slice.offset);
    if (tensor.slices.size() > 1) absl::StrAppend(&place, " [", ToString(slice.position), "]");
    places.push_back(std::move(place));
    if (places.size() == kShownSlices && tensor.slices.size() > kShownSlices) {
      places.push_back(absl::StrCat(tensor.slices.size() - kShownSlices, " slices more"));
      break;
    }
  }
  return absl::StrJoin(places, ", ");
}

std::string UnfinishedText(const v1::JobState& job) {
  int64_t records = 0;
  for (const v1::JobState::Range& range : job.unfinished()) records += range.end() - range.begin();
  return absl::StrCat("records: ", records, ", ranges: ", job.unfinished_size());
}

void AddJob(const v1::JobState& job, TextTable* table) {
  table->AddRow({"job", absl::StrFormat("%016x", job.job_id())});
  table->AddRow({"step", absl::StrCat(job.global_step())});
  table->AddRow(
      {"records", absl::StrCat("epoch ", job.next_epoch(), ", record ", job.next_position(), " of ",
                               job.num_records(), " is next, ", job.batch_size(), " at a time")});
  table->AddRow({"unfinished", UnfinishedText(job)});
  table->AddRow({"configuration", HashToString(job.config_hash())});
  if (job.has_mode()) table->AddRow({"mode", ModeText(job.mode())});
}

void AddShard(const std::string& name, const v1::ShardState& shard, TextTable* table) {
  int64_t updates = 0;
  for (const v1::ShardState::Block& block : shard.blocks()) {
    updates = std::max(updates, block.updates());
  }
  table->AddRow({std::string(absl::StripPrefix(name, "_keelson/")),
                 absl::StrCat("step ", shard.shard_step(), ", blocks: ", shard.blocks_size(),
                              ", updates: at most ", updates)});
}

void AddTensors(const BundleContents& contents, const TensorNames& names, TextTable* table) {
  table->AddRow({"tensor", "type", "shape", "bytes", "stored in"});
  for (const auto& [name, in_bundle] : names.in_bundle) {
    const StoredTensor& tensor = contents.tensors.find(in_bundle)->second;
    table->AddRow({absl::CHexEscape(name), DtypeName(tensor.dtype), tensor.shape.ToString(),
                   absl::StrCat(StoredBytes(tensor)), PlaceText(tensor)});
  }
}

// Prints count elements; `text(i)` is the i-th.
template <typename Text>
void PrintElements(const Shape& shape, int64_t limit, Text text, std::ostream* out) {
  const int64_t count = shape.num_elements();
  const int64_t shown = limit == 0 ? count : std::min(limit, count);
  const int64_t line = shape.rank() == 0 ? 1 : shape.dim(shape.rank() - 1);
  for (int64_t i = 0; i < shown; ++i) {
    const bool ends_line = (i + 1) % line == 0 || i + 1 == shown;
    *out << text(i) << (ends_line ? '\n' : ' ');
  }
  if (shown < count) *out << count - shown << " elements more\n";
}

void VerifyOne(const std::string& prefix, bool* sound, std::ostream* out) {
  const SnapshotCheck check = CheckSnapshot(prefix);
  for (const std::string& problem : check.problems) *out << "damaged: " << problem << "\n";
  if (!check.problems.empty()) {
    *sound = false;
    return;
  }
  *out << "ok: " << prefix << ": " << check.tensors << " tensors, " << check.bytes << " bytes\n";
  for (const std::string& tensor : check.not_checked) {
    *out << "not checked: tensor " << absl::CHexEscape(tensor) << "\n";
  }
}

}  // namespace

absl::Status ListSnapshots(const std::string& directory, std::ostream* out, ForeignPaths foreign) {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, SnapshotsOf(directory, foreign));
  TextTable table;
  table.AddRow({"step", "time (UTC)", "bytes", "tensors", "kind", "snapshot"});
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const SnapshotInfo& snapshot = snapshots[i];
    const auto bundle = BundleReader::Open(snapshot.prefix);
    std::string remark = snapshot.prefix;
    if (i + 1 == snapshots.size()) absl::StrAppend(&remark, " (newest)");
    if (!bundle.ok()) absl::StrAppend(&remark, " damaged: ", bundle.status().message());
    table.AddRow({snapshot.step == kNoStep ? "-" : absl::StrCat(snapshot.step),
                  TimeText(snapshot.time), absl::StrCat(BytesOnDisk(snapshot.prefix)),
                  bundle.ok() ? absl::StrCat((*bundle)->List().size()) : "-", KindText(bundle),
                  remark});
  }
  *out << table.ToString();
  return absl::OkStatus();
}

absl::Status ShowSnapshot(const std::string& name, std::ostream* out, ForeignPaths foreign) {
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(name, foreign));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  ASSIGN_OR_RETURN(const KeelsonState state, ReadKeelsonState(*bundle));
  TextTable facts;
  facts.AddRow({"snapshot", prefix});
  facts.AddRow(
      {"size", absl::StrCat(BytesOnDisk(prefix), " bytes in ", bundle->contents().data_sizes.size(),
                            " data files and the index")});
  ASSIGN_OR_RETURN(const std::optional<v1::SnapshotBase> base, BaseOf(*bundle));
  if (base.has_value()) facts.AddRow({"delta on", ToString(*base)});
  if (state.job.has_value()) AddJob(*state.job, &facts);
  for (const auto& [tensor, shard] : state.shards) AddShard(tensor, shard, &facts);
  RETURN_IF_ERROR(AddTables(*bundle, &facts));
  TextTable tensors;
  ASSIGN_OR_RETURN(const TensorNames names, TensorNamesOf(*bundle));
  AddTensors(bundle->contents(), names, &tensors);
  *out << facts.ToString() << "\n" << tensors.ToString();
  return absl::OkStatus();
}

absl::Status ShowValues(const std::string& name, const std::string& wanted, int64_t limit,
                        std::ostream* out, ForeignPaths foreign) {
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(name, foreign));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  ASSIGN_OR_RETURN(const TensorNames names, TensorNamesOf(*bundle));
  const std::string tensor = names.InBundle(wanted);
  ASSIGN_OR_RETURN(const TensorInfo info, bundle->Info(tensor));
  if (info.dtype == BundleDtype::kString) {
    ASSIGN_OR_RETURN(const std::vector<std::string> strings, bundle->ReadStrings(tensor));
    const auto text = [&](int64_t i) {
      return absl::StrCat("\"", absl::CHexEscape(strings[i]), "\"");
    };
    PrintElements(info.shape, limit, text, out);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string bytes, bundle->ReadBytes(tensor));
  const int64_t element_bytes = DtypeSize(info.dtype);
  const auto text = [&](int64_t i) {
    return ElementText(info.dtype, bytes.data() + i * element_bytes);
  };
  PrintElements(info.shape, limit, text, out);
  return absl::OkStatus();
}

absl::StatusOr<bool> VerifySnapshots(const std::string& name, std::ostream* out,
                                     ForeignPaths foreign) {
  bool sound = true;
  if (!IsDirectory(name)) {
    ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(name, foreign));
    VerifyOne(prefix, &sound, out);
    return sound;
  }
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, SnapshotsOf(name, foreign));
  for (const SnapshotInfo& snapshot : snapshots) VerifyOne(snapshot.prefix, &sound, out);
  return sound;
}

}  // namespace keelson
