#include "core/checkpoint/snapshot_lease.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"

namespace keelson {
namespace {

using nlohmann::json;

constexpr char kExpiresField[] = "expires";
constexpr char kHolderField[] = "holder";
constexpr uint64_t kMaxLeaseBytes = uint64_t{64} << 10;

std::string FormatLease(absl::Time expires, const std::string& holder) {
  const json object = {
      {kExpiresField, absl::FormatTime(absl::RFC3339_full, expires, absl::UTCTimeZone())},
      {kHolderField, holder}};
  return absl::StrCat(object.dump(-1, ' ', false, json::error_handler_t::replace), "\n");
}

void ParseLease(const std::string& text, LeaseFile* lease) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return;
  const auto expires = object.find(kExpiresField);
  const auto holder = object.find(kHolderField);
  if (expires == object.end() || holder == object.end() || !expires->is_string() ||
      !holder->is_string()) {
    return;
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, expires->get_ref<const std::string&>(), &time, &error)) {
    return;
  }
  lease->expires = time;
  lease->holder = holder->get<std::string>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotLease>> SnapshotLease::Take(FileSystem* file_system,
                                                                   const std::string& prefix,
                                                                   std::string holder,
                                                                   const Clock* clock) {
  std::string path = absl::StrCat(prefix, kLeaseInfix, RandomId());
  std::unique_ptr<SnapshotLease> lease(
      new SnapshotLease(file_system, prefix, std::move(path), std::move(holder), clock));
  RETURN_IF_ERROR(lease->Renew());
  return lease;
}

SnapshotLease::SnapshotLease(FileSystem* file_system, std::string prefix, std::string path,
                             std::string holder, const Clock* clock)
    : file_system_(file_system),
      prefix_(std::move(prefix)),
      path_(std::move(path)),
      holder_(std::move(holder)),
      clock_(clock) {}

SnapshotLease::~SnapshotLease() { file_system_->Remove(path_).IgnoreError(); }

absl::Status SnapshotLease::Renew() {
  const absl::Time expires = clock_->Now() + kDuration;
  RETURN_IF_ERROR(WriteFileAtomically(path_, FormatLease(expires, holder_), file_system_));
  // Checked after the write: a snapshot that exists now was not deleted before the lease could be
  // seen.
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(IndexPath(prefix_)));
  if (!exists) {
    return absl::NotFoundError(absl::StrCat(IndexPath(prefix_), ": no such file; cannot lease"));
  }
  expires_ = expires;
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, LeaseFile>> ListLeases(FileSystem* file_system,
                                                            const std::string& directory) {
  std::map<std::string, LeaseFile> leases;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  for (const std::string& name : names) {
    const size_t infix = absl::string_view(name).find(kLeaseInfix);
    if (infix == absl::string_view::npos || absl::StrContains(name, ".tempstate")) continue;
    LeaseFile lease;
    lease.snapshot = name.substr(0, infix);
    const absl::StatusOr<std::string> text =
        ReadBoundedFile(JoinPath(directory, name), kMaxLeaseBytes, file_system);
    if (text.ok()) {
      ParseLease(*text, &lease);
    } else if (!absl::IsNotFound(text.status())) {
      LogWarning("a lease that holds nothing: ", text.status().message());
    }
    leases.emplace(name, std::move(lease));
  }
  return leases;
}

}  // namespace keelson
