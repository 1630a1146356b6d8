// Where the processes of a job are whose leader is told by themselves, for its cluster lists the
// leader alone (ClusterSpec::peers_register).
#ifndef KEELSON_CHIEF_SERVERS_ANNOUNCED_HOSTS_H_
#define KEELSON_CHIEF_SERVERS_ANNOUNCED_HOSTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/cluster/cluster_spec.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// The newest announcement of each process that hosts a shard (ChiefService.AnnounceHost). Nothing
// of it is stored, and nobody waits here: each process announces itself again and again
// (HostAnnouncer), so that a leader that was restarted knows all that live within a moment, and
// until then takes them for servers that do not answer. A process that was restarted, which may be
// at another address, does so first of all. Thread-safe.
class AnnouncedHosts {
 public:
  // `address` is that of the host's process from now on; empty: it is not known any more, for
  // another task's process is there.
  using Watcher = std::function<void(const Task& host, const std::string& address)>;

  // A process that has taken an older one's place, and does not announce itself again within this
  // time, had ended before its announcement came.
  static constexpr absl::Duration kConfirmation = absl::Seconds(3);

  // `cluster` is the leader's. The clock outlives this.
  AnnouncedHosts(const ClusterSpec& cluster, uint64_t config_hash, const Clock* clock);

  // Takes an announcement that came from `seen_host`, a host's name or address; empty: from the
  // leader's machine. Errors: AnnounceHost's (chief_service.proto).
  absl::Status Announce(const v1::AnnounceHostRequest& request, absl::string_view seen_host,
                        v1::AnnounceHostResponse* response);

  // `watcher` gets all addresses that are known, and then each that changes, one after the other.
  // It must not call this. Null: nobody is told any more once this has returned.
  void Watch(Watcher watcher);

 private:
  struct Known {
    uint64_t incarnation = 0;
    std::string peer;
    std::string address;  // empty: another's process is there
    absl::Duration heard;
    int64_t registered_at_us = 0;
    // It has announced itself again, and so has lived after its first announcement had come.
    bool confirmed = false;
  };

  size_t RankOf(const Task& task) const;
  std::string Name(const Task& task) const;
  absl::Status CheckHost(const Task& task, const v1::AnnounceHostRequest& request) const;
  // ALREADY_EXISTS: the process that is known has come later. UNAVAILABLE: so it has, but it may
  // have ended before its announcement came.
  absl::Status CheckNewest(const Task& task, const v1::AnnounceHostRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::string> AddressOf(const v1::AnnounceHostRequest& request,
                                        absl::string_view seen_host) const;
  void Note(const Task& task, const v1::AnnounceHostRequest& request, const std::string& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // No other process is at this address any more.
  void ForgetOthersAt(const Task& task, const std::string& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Tell(const Task& task, const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // "; waiting for 2 of 3 processes: rank 1 (worker-0), rank 2 (worker-1)", "; all 3 processes are
  // there".
  std::string ProgressText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::vector<Task> hosts_;  // by rank
  const std::string leader_host_;
  const uint64_t config_hash_;
  const Clock* const clock_;

  mutable Mutex mu_;  // held while the watcher is told
  std::map<Task, Known> known_ ABSL_GUARDED_BY(mu_);
  Watcher watcher_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_ANNOUNCED_HOSTS_H_
