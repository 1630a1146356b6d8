#include "chief/servers/announced_hosts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"
#include "core/cluster/task_proto.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

// A name in the DNS is no longer than this.
constexpr size_t kLongestHost = 253;
// What a process is called in messages, as it says itself.
constexpr size_t kLongestPeer = 200;
constexpr int64_t kLatest = int64_t{1} << 62;

absl::Status BadAnnouncement(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("AnnounceHost: ", text));
}

std::string HostOf(const ClusterSpec& leader) {
  const absl::StatusOr<Address> address = ParseAddress("", leader.ChiefAddress().value_or(""));
  return address.ok() ? address->host : "";
}

absl::Status OtherCount(const std::string& name, size_t ours, size_t theirs) {
  return absl::FailedPreconditionError(
      absl::StrCat(name, ": expected that ", ours,
                   " processes host the model, as the leader counts them, found ", theirs,
                   " (WORLD_SIZE, or the least number of PET_NNODES)"));
}

}  // namespace

AnnouncedHosts::AnnouncedHosts(const ClusterSpec& cluster, uint64_t config_hash, const Clock* clock)
    : hosts_(cluster.ShardHosts()),
      leader_host_(HostOf(cluster)),
      config_hash_(config_hash),
      clock_(clock) {
  MutexLock lock(&mu_);
  if (hosts_.size() > 1) LogInfo("the other processes register here", ProgressText());
}

absl::Status AnnouncedHosts::Announce(const v1::AnnounceHostRequest& request,
                                      absl::string_view seen_host,
                                      v1::AnnounceHostResponse* response) {
  ASSIGN_OR_RETURN(const Task task, TaskFromProto(request.header().task()));
  RETURN_IF_ERROR(CheckHost(task, request));
  ASSIGN_OR_RETURN(const std::string address, AddressOf(request, seen_host));
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(CheckNewest(task, request));
  Note(task, request, address);
  response->set_address(address);
  response->set_registered_at_us(known_[task].registered_at_us);
  return absl::OkStatus();
}

void AnnouncedHosts::Watch(Watcher watcher) {
  MutexLock lock(&mu_);
  watcher_ = std::move(watcher);
  for (const auto& [task, known] : known_) Tell(task, known.address);
}

size_t AnnouncedHosts::RankOf(const Task& task) const {
  return static_cast<size_t>(std::find(hosts_.begin(), hosts_.end(), task) - hosts_.begin());
}

std::string AnnouncedHosts::Name(const Task& task) const {
  return absl::StrCat("rank ", RankOf(task), " (", task.ToString(), ")");
}

absl::Status AnnouncedHosts::CheckHost(const Task& task,
                                       const v1::AnnounceHostRequest& request) const {
  const size_t rank = RankOf(task);
  if (rank == 0 || rank == hosts_.size()) {
    return BadAnnouncement(absl::StrCat(
        "expected a rank from 1 to ", hosts_.size() - 1, ", which host the model beside the leader",
        hosts_.size() > 1
            ? absl::StrCat(" (", hosts_[1].ToString(), " to ", hosts_.back().ToString(), ")")
            : "",
        ", found ", task.ToString(), " of ", request.hosts(), " processes"));
  }
  if (request.header().incarnation() == 0) {
    return BadAnnouncement(absl::StrCat(task.ToString(), ": expected an incarnation, found 0"));
  }
  if (request.registered_at_us() < 0 || request.registered_at_us() > kLatest) {
    return BadAnnouncement(
        absl::StrCat("registered_at_us: expected 0..2^62, found ", request.registered_at_us()));
  }
  if (request.config_hash() != config_hash_) {
    return ConfigMismatch(config_hash_, request.config_hash(), Name(task));
  }
  if (request.hosts() == hosts_.size()) return absl::OkStatus();
  return OtherCount(Name(task), hosts_.size(), request.hosts());
}

absl::StatusOr<std::string> AnnouncedHosts::AddressOf(const v1::AnnounceHostRequest& request,
                                                      absl::string_view seen_host) const {
  absl::string_view host = request.host();
  if (host.empty()) host = seen_host;
  if (host.empty()) host = leader_host_;
  if (host.size() > kLongestHost) {
    return BadAnnouncement(
        absl::StrCat("host: expected at most ", kLongestHost, " bytes, found ", host.size()));
  }
  const std::string address = absl::StrCat(host, ":", request.port());
  RETURN_IF_ERROR(ParseAddress("AnnounceHost: the caller's address", address).status());
  return address;
}

absl::Status AnnouncedHosts::CheckNewest(const Task& task,
                                         const v1::AnnounceHostRequest& request) const {
  const auto found = known_.find(task);
  const bool new_here = request.registered_at_us() == 0;
  if (new_here || found == known_.end()) return absl::OkStatus();
  const Known& known = found->second;
  const bool newest = known.incarnation == request.header().incarnation() ||
                      request.registered_at_us() > known.registered_at_us;
  if (newest) return absl::OkStatus();
  const std::string other = absl::StrCat(known.peer, " at ", known.address);
  if (known.confirmed) {
    return absl::AlreadyExistsError(
        absl::StrCat(Name(task), " is another process now, ", other,
                     ", which has registered later: expected one process of each rank, found two"));
  }
  if (clock_->Monotonic() - known.heard >= kConfirmation) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      Name(task), ": ", other, " has registered later; whether it lives is not known yet"));
}

void AnnouncedHosts::Note(const Task& task, const v1::AnnounceHostRequest& request,
                          const std::string& address) {
  const absl::Duration now = clock_->Monotonic();
  const uint64_t incarnation = request.header().incarnation();
  Known& known = known_[task];
  const std::string peer = absl::CEscape(request.peer().substr(0, kLongestPeer));
  const bool first = known.incarnation == 0;
  const bool same = known.incarnation == incarnation;
  std::string before;
  if (!first && !same) {
    before = absl::StrCat(
        " in place of ", known.peer, ", heard of ",
        absl::FormatDuration(absl::Trunc(now - known.heard, absl::Milliseconds(10))), " ago");
  }
  const bool moved = known.address != address;
  known.incarnation = incarnation;
  known.peer = peer;
  known.address = address;
  known.heard = now;
  known.confirmed = request.registered_at_us() != 0;
  if (!same) {
    known.registered_at_us =
        request.registered_at_us() != 0
            ? request.registered_at_us()
            : std::max(absl::ToUnixMicros(clock_->Now()), known.registered_at_us + 1);
  }
  if (!same || moved) {
    LogInfo(Name(task), " is ", peer, " at ", address, before, first ? ProgressText() : "");
  }
  if (!moved) return;
  ForgetOthersAt(task, address);
  Tell(task, address);
}

void AnnouncedHosts::ForgetOthersAt(const Task& task, const std::string& address) {
  for (auto& [other, known] : known_) {
    if (other == task || known.address != address) continue;
    LogInfo(Name(other), " is not at ", address, " any more");
    known.address.clear();
    Tell(other, "");
  }
}

void AnnouncedHosts::Tell(const Task& task, const std::string& address) {
  if (watcher_ != nullptr) watcher_(task, address);
}

std::string AnnouncedHosts::ProgressText() const {
  std::vector<std::string> missing;
  for (size_t rank = 1; rank < hosts_.size(); ++rank) {
    if (!known_.contains(hosts_[rank])) missing.push_back(Name(hosts_[rank]));
  }
  if (missing.empty()) return absl::StrCat("; all ", hosts_.size(), " processes are there");
  return absl::StrCat("; waiting for ", missing.size(), " of ", hosts_.size(),
                      " processes: ", absl::StrJoin(missing, ", "));
}

}  // namespace keelson
