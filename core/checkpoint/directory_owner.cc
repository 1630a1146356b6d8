#include "core/checkpoint/directory_owner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/trouble_log.h"

namespace keelson {
namespace {

// The longest pause after a renewal that failed.
constexpr absl::Duration kRetryPause = absl::Seconds(1);

std::string Setting(const std::string& model_dir) {
  return absl::StrCat("checkpoint.model_dir ", model_dir, ": ");
}

absl::Status Held(const std::string& model_dir, const std::string& owner) {
  return absl::AlreadyExistsError(absl::StrCat(
      Setting(model_dir), "expected a directory that no other job trains in, found one held by ",
      owner, "; wait for its end, stop it, or choose another --model_dir"));
}

absl::Status TakenOver(const std::string& model_dir, absl::string_view by, absl::Duration lease) {
  return absl::AlreadyExistsError(
      absl::StrCat(Setting(model_dir), "taken over by ", by,
                   ", because this process has not renewed its lease of ",
                   absl::FormatDuration(lease), "; it writes nothing more there"));
}

// The error for a directory whose lock another process holds.
absl::Status HeldLock(const v1::JobFile& self, const std::string& model_dir,
                      FileSystem* file_system) {
  const absl::StatusOr<std::optional<StoredJobFile>> found = ReadJobFile(file_system, model_dir);
  const bool named = found.ok() && found->has_value() && !(*found)->job.released() &&
                     (*found)->job.boot_id() == self.boot_id();
  return Held(model_dir, named ? DescribeOwner((*found)->job)
                               : "another process of this machine, which has just started");
}

// Errors of a directory that can be read, but not written.
bool CannotWrite(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) ||
         absl::IsUnavailable(status);
}

// What another try may mend.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryOwner>> DirectoryOwner::Take(Options options,
                                                                     FileSystem* file_system,
                                                                     const Clock* clock,
                                                                     StopSignal* stop) {
  const std::string model_dir = options.model_dir;
  const absl::Status made = file_system->CreateDirectories(model_dir);
  if (!made.ok()) {
    return absl::Status(made.code(), absl::StrCat(Setting(model_dir), made.message()));
  }
  absl::StatusOr<std::unique_ptr<FileLock>> lock = file_system->TryLock(JobLockPath(model_dir));
  if (absl::IsAlreadyExists(lock.status())) return HeldLock(options.self, model_dir, file_system);
  if (absl::IsUnimplemented(lock.status())) {
    LogWarning(lock.status().message(), "; a restarted chief waits for its predecessor's lease");
    lock = std::unique_ptr<FileLock>();
  }
  RETURN_IF_ERROR(lock.status());
  std::unique_ptr<DirectoryOwner> owner(
      new DirectoryOwner(std::move(options), *std::move(lock), file_system, clock, stop));
  RETURN_IF_ERROR(owner->Acquire());
  DirectoryOwner* const renewed = owner.get();
  owner->renewal_ = Thread([renewed] { renewed->KeepRenewing(); });
  return owner;
}

DirectoryOwner::DirectoryOwner(Options options, std::unique_ptr<FileLock> lock,
                               FileSystem* file_system, const Clock* clock, StopSignal* stop)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      file_system_(file_system),
      clock_(clock),
      stop_(stop) {}

DirectoryOwner::~DirectoryOwner() {
  if (!renewal_.Joinable()) return;
  end_.Raise();
  renewal_.Join();
  Release();
}

uint64_t DirectoryOwner::term() const {
  MutexLock lock(&mu_);
  return term_;
}

bool DirectoryOwner::heir() const {
  MutexLock lock(&mu_);
  return heir_;
}

int64_t DirectoryOwner::snapshot_step() const {
  MutexLock lock(&mu_);
  return snapshot_step_;
}

void DirectoryOwner::NoteSnapshot(int64_t step) {
  MutexLock lock(&mu_);
  snapshot_step_ = std::max(snapshot_step_, step);
}

void DirectoryOwner::NoteConfigInUse() {
  MutexLock lock(&mu_);
  config_in_use_ = true;
}

bool DirectoryOwner::in_force() const {
  MutexLock lock(&mu_);
  return lost_.ok() && clock_->Monotonic() - renewed_at_ < lease();
}

absl::Status DirectoryOwner::lost() const {
  MutexLock lock(&mu_);
  return lost_;
}

absl::Status DirectoryOwner::Acquire() {
  MutexLock renewal(&renewal_mu_);
  Watch watch;
  absl::Duration tries_until = clock_->Monotonic() + lease();
  while (true) {
    const absl::StatusOr<std::optional<StoredJobFile>> found =
        ReadJobFile(file_system_, options_.model_dir);
    absl::Status status = found.status();
    if (found.ok()) {
      ASSIGN_OR_RETURN(const bool free, IsFree(*found, &watch));
      if (free) status = TakeOver(*found);
      if (free && status.ok()) return status;
    }
    const absl::Duration now = clock_->Monotonic();
    if (status.ok()) tries_until = now + lease();
    if (!status.ok() && (!IsPassing(status) || now >= tries_until)) {
      if (!predecessor_.has_value() || !CannotWrite(status)) return status;
      LogWarning(Setting(options_.model_dir), "cannot be taken at present, and is not written to ",
                 "before: ", status.message());
      UseTerm(job_.term());
      MutexLock lock(&mu_);
      heir_ = true;
      return absl::OkStatus();
    }
    if (stop_->WaitFor(options_.look_pause.value_or(lease() / 10))) {
      return absl::CancelledError(absl::StrCat("while waiting for ", options_.model_dir));
    }
  }
}

absl::StatusOr<bool> DirectoryOwner::IsFree(const std::optional<StoredJobFile>& found,
                                            Watch* watch) const {
  if (!found.has_value() || HasEnded(found->job)) return true;
  const absl::Duration lease = absl::Seconds(found->job.lease_seconds());
  if (watch->version.empty()) {
    *watch = {found->version, clock_->Monotonic()};
    LogInfo(options_.model_dir, ": waiting ", absl::FormatDuration(lease), " to see whether ",
            DescribeOwner(found->job), " still trains there");
  }
  if (watch->version != found->version) return Held(options_.model_dir, DescribeOwner(found->job));
  return clock_->Monotonic() - watch->since >= lease;
}

bool DirectoryOwner::HasEnded(const v1::JobFile& job) const {
  // It may be this process itself, whose write succeeded although its answer was an error.
  if (job.released() || job.owner() == options_.self.owner()) return true;
  return lock_ != nullptr && !job.boot_id().empty() && job.boot_id() == options_.self.boot_id() &&
         job.lock() == lock_->identity();
}

absl::Status DirectoryOwner::TakeOver(const std::optional<StoredJobFile>& predecessor) {
  if (predecessor.has_value() && options_.may_follow != nullptr) {
    RETURN_IF_ERROR(options_.may_follow(predecessor->job));
  }
  v1::JobFile next = options_.self;
  next.set_format(kJobFileFormat);
  next.set_term(predecessor.has_value() ? predecessor->job.term() + 1 : 1);
  next.set_since(absl::FormatTime(absl::RFC3339_sec, clock_->Now(), absl::UTCTimeZone()));
  next.set_config_hash(predecessor.has_value() ? predecessor->job.config_hash() : "");
  next.set_config(predecessor.has_value() ? predecessor->job.config() : "");
  if (lock_ != nullptr) next.set_lock(lock_->identity());
  version_ = predecessor.has_value() ? predecessor->version : "";
  if (predecessor.has_value()) {
    NoteSnapshot(predecessor->job.snapshot_step());
    predecessor_ = predecessor->job.owner();
    watch_ = {predecessor->version, clock_->Monotonic()};
    job_ = next;
  }
  return Write(std::move(next));
}

void DirectoryOwner::SetNoted(v1::JobFile* next) const {
  MutexLock lock(&mu_);
  next->set_snapshot_step(snapshot_step_);
  if (!config_in_use_) return;
  next->set_config_hash(options_.self.config_hash());
  next->set_config(options_.self.config());
}

absl::Status DirectoryOwner::Write(v1::JobFile next) {
  const absl::Duration begin = clock_->Monotonic();
  SetNoted(&next);
  ASSIGN_OR_RETURN(version_, file_system_->ReplaceIf(JobFilePath(options_.model_dir), version_,
                                                     FormatJobFile(next)));
  job_ = std::move(next);
  predecessor_.reset();
  MutexLock lock(&mu_);
  renewed_at_ = begin;
  term_ = job_.term();
  heir_ = false;
  return absl::OkStatus();
}

absl::Status DirectoryOwner::Confirm() {
  const absl::Status status = Renew();
  // No lock is held here, because those who wait for the signal may ask this object.
  if (!lost().ok()) stop_->Raise();
  return status;
}

void DirectoryOwner::UseTerm(uint64_t term) {
  job_.set_term(term);
  MutexLock lock(&mu_);
  term_ = term;
}

absl::StatusOr<uint64_t> DirectoryOwner::RaiseTerm(uint64_t known) {
  if (heir()) {
    MutexLock renewal(&renewal_mu_);
    UseTerm(std::max(job_.term(), known + 1));
    return term();
  }
  const absl::Status status = Renew(known + 1);
  if (!lost().ok()) stop_->Raise();
  RETURN_IF_ERROR(status);
  return term();
}

absl::Status DirectoryOwner::Renew(uint64_t least_term) {
  MutexLock renewal(&renewal_mu_);
  RETURN_IF_ERROR(lost());
  v1::JobFile next = job_;
  next.set_term(std::max(job_.term(), least_term));
  next.set_renewals(job_.renewals() + 1);
  if (Write(next).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(LookAgain());
  next = job_;
  next.set_term(std::max(job_.term(), least_term));
  next.set_renewals(job_.renewals() + 1);
  return Write(next);
}

absl::Status DirectoryOwner::LookAgain() {
  const absl::StatusOr<std::optional<StoredJobFile>> found =
      ReadJobFile(file_system_, options_.model_dir);
  if (absl::IsFailedPrecondition(found.status())) return NoteLost("a newer build of Keelson");
  RETURN_IF_ERROR(found.status());
  if (!found->has_value()) {
    // The directory has been emptied: the file is made again.
    version_.clear();
    return absl::OkStatus();
  }
  const v1::JobFile& job = (*found)->job;
  if (predecessor_ == job.owner()) return LookAtPredecessor(**found);
  if (job.owner() != job_.owner()) return NoteLost(DescribeOwner(job));
  job_ = job;
  version_ = (*found)->version;
  return absl::OkStatus();
}

absl::Status DirectoryOwner::LookAtPredecessor(const StoredJobFile& found) {
  const absl::Duration now = clock_->Monotonic();
  if (watch_.version != found.version) {
    // It lives after all. It will end when the servers have told it that it was replaced.
    watch_ = {found.version, now};
    UseTerm(std::max(job_.term(), found.job.term() + 1));
  }
  const bool free = found.version == version_ || found.job.released() ||
                    now - watch_.since >= absl::Seconds(found.job.lease_seconds());
  if (!free) {
    return absl::UnavailableError(
        absl::StrCat(Setting(options_.model_dir), "held by ", DescribeOwner(found.job)));
  }
  version_ = found.version;
  return absl::OkStatus();
}

absl::Status DirectoryOwner::NoteLost(absl::string_view to) {
  MutexLock lock(&mu_);
  lost_ = TakenOver(options_.model_dir, to, lease());
  return lost_;
}

void DirectoryOwner::KeepRenewing() {
  TroubleLog trouble(absl::StrCat("renewing ", JobFilePath(options_.model_dir)), clock_);
  const absl::Duration pause = options_.renew_pause.value_or(lease() / 4);
  bool ok = true;
  while (!end_.WaitFor(ok ? pause : std::min(pause, kRetryPause))) {
    const absl::Status status = Confirm();
    if (!lost().ok()) return;
    trouble.Note(status);
    ok = status.ok();
  }
}

void DirectoryOwner::Release() {
  MutexLock renewal(&renewal_mu_);
  if (!lost().ok() || heir()) return;
  v1::JobFile next = job_;
  next.set_released(true);
  const absl::Status status = Write(std::move(next));
  // A directory that is gone, or that another process has taken, needs no release.
  if (status.ok() || absl::IsNotFound(status) || absl::IsAborted(status)) return;
  LogWarning("the next job in ", options_.model_dir, " may have to wait ",
             absl::FormatDuration(lease()), ": ", status.message());
}

}  // namespace keelson
