#include "evaluator/snapshot_claims.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using nlohmann::json;

constexpr char kBegun[] = "begun";
constexpr char kExpires[] = "expires";
constexpr char kHolder[] = "holder";
constexpr char kId[] = "id";
constexpr uint64_t kMaxClaimBytes = uint64_t{64} << 10;

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

std::string FormatClaim(const ClaimInfo& claim) {
  const json object = {{kBegun, TimeText(claim.begun)},
                       {kExpires, TimeText(claim.expires)},
                       {kHolder, claim.holder},
                       {kId, claim.id}};
  return absl::StrCat(object.dump(-1, ' ', false, json::error_handler_t::replace), "\n");
}

std::optional<absl::Time> TimeField(const json& object, const char* field) {
  const auto value = object.find(field);
  if (value == object.end() || !value->is_string()) return std::nullopt;
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, value->get_ref<const std::string&>(), &time, &error)) {
    return std::nullopt;
  }
  return time;
}

std::optional<ClaimInfo> ParseClaim(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const std::optional<absl::Time> begun = TimeField(object, kBegun);
  const std::optional<absl::Time> expires = TimeField(object, kExpires);
  const auto holder = object.find(kHolder);
  const auto id = object.find(kId);
  if (!begun.has_value() || !expires.has_value() || holder == object.end() ||
      !holder->is_string() || id == object.end() || !id->is_number_unsigned()) {
    return std::nullopt;
  }
  return ClaimInfo{holder->get<std::string>(), *begun, *expires, id->get<uint64_t>()};
}

// Returns nothing if the file has just gone. A file without content is being written, or its writer
// has crashed.
std::optional<ClaimInfo> ReadClaim(const std::string& path, FileSystem* file_system) {
  const absl::StatusOr<std::string> text = ReadBoundedFile(path, kMaxClaimBytes, file_system);
  if (text.ok()) {
    const std::optional<ClaimInfo> claim = ParseClaim(*text);
    if (claim.has_value()) return claim;
  }
  const absl::StatusOr<absl::Time> written = file_system->ModificationTime(path);
  if (!written.ok()) return std::nullopt;
  return ClaimInfo{"somebody", *written, *written + SnapshotClaim::kDuration, 0};
}

absl::Status Taken(int64_t step, absl::string_view holder) {
  return absl::AlreadyExistsError(absl::StrCat("step ", step, " is being scored by ", holder));
}

// Unlike a rename, this does not replace a file. ALREADY_EXISTS: there is such a file.
absl::Status CreateExclusively(FileSystem* file_system, const std::string& path,
                               absl::string_view content) {
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, file_system->CreateExclusive(path));
  absl::Status status = file->Append(content);
  if (status.ok()) status = file->Close();
  if (!status.ok()) file_system->Remove(path).IgnoreError();
  return status;
}

}  // namespace

SnapshotClaim::SnapshotClaim(std::string path, ClaimInfo info, const Clock* clock,
                             FileSystem* file_system, absl::Duration renewal_interval)
    : path_(std::move(path)),
      clock_(clock),
      file_system_(file_system),
      renewal_interval_(renewal_interval),
      info_(std::move(info)) {
  thread_ = Thread([this] { KeepRenewing(); });
}

SnapshotClaim::~SnapshotClaim() {
  returned_.Raise();
  thread_.Join();
  if (IsMine()) file_system_->Remove(path_).IgnoreError();
}

void SnapshotClaim::KeepRenewing() {
  while (!returned_.WaitFor(renewal_interval_)) {
    const absl::Status status = Renew();
    if (!status.ok())
      LogWarning("another evaluator may score the same snapshot: ", status.message());
    if (absl::IsAborted(status)) return;
  }
}

absl::Status SnapshotClaim::Renew() {
  if (!IsMine()) return absl::AbortedError(absl::StrCat(path_, ": this claim has been taken over"));
  info_.expires = clock_->Now() + kDuration;
  return WriteFileAtomically(path_, FormatClaim(info_), file_system_);
}

bool SnapshotClaim::IsMine() const {
  const absl::StatusOr<std::string> text = ReadBoundedFile(path_, kMaxClaimBytes, file_system_);
  const std::optional<ClaimInfo> claim = text.ok() ? ParseClaim(*text) : std::nullopt;
  return claim.has_value() && claim->id == info_.id;
}

SnapshotClaims::SnapshotClaims(std::string directory, std::string holder, const Clock* clock,
                               FileSystem* file_system, absl::Duration renewal_interval)
    : directory_(std::move(directory)),
      holder_(std::move(holder)),
      clock_(clock),
      file_system_(file_system),
      renewal_interval_(renewal_interval) {}

absl::StatusOr<std::map<int64_t, ClaimInfo>> SnapshotClaims::HeldByOthers() const {
  ASSIGN_OR_RETURN(const auto newest, Newest());
  std::map<int64_t, ClaimInfo> held;
  for (const auto& [step, claim] : newest) {
    if (Binds(claim.info)) held.emplace(step, claim.info);
  }
  return held;
}

absl::StatusOr<std::unique_ptr<SnapshotClaim>> SnapshotClaims::Take(int64_t step) {
  RETURN_IF_ERROR(file_system_->CreateDirectories(directory_));
  ASSIGN_OR_RETURN(const auto newest, Newest());
  const auto before = newest.find(step);
  if (before != newest.end() && Binds(before->second.info)) {
    return Taken(step, before->second.info.holder);
  }
  const int64_t generation = before == newest.end() ? 1 : before->second.generation + 1;
  const std::string path = JoinPath(directory_, absl::StrCat(step, ".", generation));
  const absl::Time now = clock_->Now();
  ClaimInfo claim{holder_, now, now + SnapshotClaim::kDuration, RandomId()};
  const absl::Status status = CreateExclusively(file_system_, path, FormatClaim(claim));
  if (absl::IsAlreadyExists(status)) return Taken(step, "another evaluator");
  RETURN_IF_ERROR(status);
  if (before != newest.end()) {
    LogInfo("step ", step, ": taking over from ", before->second.info.holder,
            ", whose claim has ended");
    file_system_->Remove(JoinPath(directory_, before->second.name)).IgnoreError();
  }
  return std::unique_ptr<SnapshotClaim>(
      new SnapshotClaim(path, std::move(claim), clock_, file_system_, renewal_interval_));
}

absl::Status SnapshotClaims::RemoveStale() {
  ASSIGN_OR_RETURN(const auto newest, Newest());
  for (const auto& [step, claim] : newest) {
    const bool forgotten = claim.info.expires + SnapshotClaim::kDuration < clock_->Now();
    if (!forgotten && claim.info.holder != holder_) continue;
    RETURN_IF_ERROR(file_system_->Remove(JoinPath(directory_, claim.name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<int64_t, SnapshotClaims::ClaimFile>> SnapshotClaims::Newest() const {
  std::map<int64_t, ClaimFile> newest;
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(directory_));
  if (!exists) return newest;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
  for (const std::string& name : names) {
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
    ClaimFile file{name, 0, {}};
    int64_t step;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &step) ||
        !absl::SimpleAtoi(parts[1], &file.generation)) {
      continue;
    }
    const auto known = newest.find(step);
    if (known != newest.end() && known->second.generation > file.generation) continue;
    std::optional<ClaimInfo> info = ReadClaim(JoinPath(directory_, name), file_system_);
    if (!info.has_value()) continue;
    file.info = *std::move(info);
    newest[step] = std::move(file);
  }
  return newest;
}

bool SnapshotClaims::Binds(const ClaimInfo& claim) const {
  return claim.holder != holder_ && claim.expires > clock_->Now();
}

}  // namespace keelson
