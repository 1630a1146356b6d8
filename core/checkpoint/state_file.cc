#include "core/checkpoint/state_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/presence.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr char kStateName[] = "checkpoint";
constexpr uint64_t kMaxStateBytes = uint64_t{16} << 20;

// Keeps the first error of a text proto.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status BadState(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": not a checkpoint state file: ", what));
}

absl::StatusOr<v1::CheckpointState> ParseState(const std::string& text, const std::string& path) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  v1::CheckpointState proto;
  if (!parser.ParseFromString(text, &proto)) return BadState(path, error.text());
  if (proto.model_checkpoint_path().empty()) return BadState(path, "it names no snapshot");
  if (proto.all_model_checkpoint_paths().empty()) {
    proto.add_all_model_checkpoint_paths(proto.model_checkpoint_path());
  }
  return proto;
}

double ToSeconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

absl::Time FromSeconds(double seconds) {
  constexpr double kLimit = 1e12;  // keeps the microseconds within int64
  return absl::FromUnixMicros(std::llround(std::clamp(seconds, -kLimit, kLimit) * 1e6));
}

}  // namespace

StateFile::StateFile(FileSystem* file_system, std::string model_dir, ForeignPaths foreign,
                     SnapshotNames names)
    : file_system_(file_system),
      model_dir_(std::move(model_dir)),
      path_(JoinPath(model_dir_, kStateName)),
      foreign_(foreign),
      names_(names) {}

absl::StatusOr<std::optional<StateFile::State>> StateFile::Read() const {
  ASSIGN_OR_RETURN(const bool exists, IsPresent(path(), file_system_));
  if (!exists) return std::nullopt;
  absl::StatusOr<VersionedContent> read = file_system_->ReadVersioned(path(), kMaxStateBytes);
  if (absl::IsNotFound(read.status())) {
    return absl::UnavailableError(
        absl::StrCat(path(), ": found, but not there to be read: ", read.status().message()));
  }
  RETURN_IF_ERROR(read.status());
  ASSIGN_OR_RETURN(const v1::CheckpointState proto, ParseState(read->content, path()));
  State state;
  state.version = std::move(read->version);
  // Absent where TensorFlow 1 wrote the file.
  const double last_preserved = proto.last_preserved_timestamp();
  state.last_preserved = last_preserved == 0 ? absl::InfiniteFuture() : FromSeconds(last_preserved);
  const int count = proto.all_model_checkpoint_paths_size();
  const bool timed = proto.all_model_checkpoint_timestamps_size() == count;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(SnapshotInfo snapshot, ParseSnapshot(proto.all_model_checkpoint_paths(i)));
    snapshot.time = timed ? FromSeconds(proto.all_model_checkpoint_timestamps(i))
                          : ModificationTimeOf(snapshot, file_system_);
    state.snapshots.push_back(std::move(snapshot));
  }
  return state;
}

absl::StatusOr<SnapshotInfo> StateFile::ParseSnapshot(const std::string& path) const {
  SnapshotInfo snapshot;
  ASSIGN_OR_RETURN(snapshot.prefix, PrefixOf(path));
  const size_t dash = path.rfind('-');
  const bool has_step = dash != std::string::npos &&
                        absl::SimpleAtoi(absl::string_view(path).substr(dash + 1), &snapshot.step);
  if (has_step && snapshot.step >= 0) return snapshot;
  if (names_ == SnapshotNames::kWithStep) {
    return BadState(path_, absl::StrCat("'", path,
                                        "' does not end in -<step>; keelson_ckpt "
                                        "import makes a snapshot to train from of it"));
  }
  snapshot.step = kNoStep;
  return snapshot;
}

absl::StatusOr<std::string> StateFile::PrefixOf(const std::string& path) const {
  const std::string joined = JoinPath(model_dir_, path);
  if (!absl::StrContains(path, '/') || foreign_ == ForeignPaths::kFollowed) return joined;
  const absl::StatusOr<std::string> root = file_system_->Resolve(model_dir_);
  const absl::StatusOr<std::string> directory = file_system_->Resolve(DirectoryOf(joined));
  absl::string_view inner = directory.ok() ? absl::string_view(*directory) : "";
  if (!root.ok() || !absl::ConsumePrefix(&inner, *root) ||
      (!inner.empty() && !absl::ConsumePrefix(&inner, "/"))) {
    return BadState(path_, absl::StrCat("'", path, "': expected a snapshot in ", model_dir_,
                                        ", found a path that leads elsewhere"));
  }
  return JoinPath(JoinPath(model_dir_, inner), BaseName(path));
}

absl::Status StateFile::Write(State* state) const {
  v1::CheckpointState proto;
  for (const SnapshotInfo& snapshot : state->snapshots) {
    const bool inside = DirectoryOf(snapshot.prefix) == DirectoryOf(path());
    proto.add_all_model_checkpoint_paths(inside ? BaseName(snapshot.prefix) : snapshot.prefix);
    proto.add_all_model_checkpoint_timestamps(ToSeconds(snapshot.time));
  }
  proto.set_model_checkpoint_path(*proto.all_model_checkpoint_paths().rbegin());
  proto.set_last_preserved_timestamp(ToSeconds(state->last_preserved));
  std::string text;
  google::protobuf::TextFormat::PrintToString(proto, &text);
  if (!state->version.empty()) {
    ASSIGN_OR_RETURN(state->version, file_system_->ReplaceIf(path(), state->version, text));
    return absl::OkStatus();
  }
  // Not ReplaceIf, which may leave an empty file: that would be damage.
  ASSIGN_OR_RETURN(const bool exists, IsPresent(path(), file_system_));
  if (exists) {
    return absl::AbortedError(absl::StrCat(path(), ": another process has made it"));
  }
  return WriteFileAtomically(path(), text, file_system_);
}

absl::Time ModificationTimeOf(const SnapshotInfo& snapshot, FileSystem* file_system) {
  return file_system->ModificationTime(IndexPath(snapshot.prefix)).value_or(absl::UnixEpoch());
}

}  // namespace keelson
