// The job's parameter servers as the chief handles them: all at once.
#ifndef KEELSON_CHIEF_SERVER_GROUP_H_
#define KEELSON_CHIEF_SERVER_GROUP_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_pool.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/client/parameter_service.h"

namespace keelson {

// Thread-safe; calls of different threads wait for each other, but for Missing.
class ServerGroup {
 public:
  struct Options {
    v1::RequestHeader header;  // the chief's
    uint64_t config_hash = 0;
    // Told to the servers, for workers that look for the chief. May be empty.
    std::string chief_address;
    // How long a server may take to appear, and how often the missing are named meanwhile.
    absl::Duration startup_timeout = absl::Minutes(10);
    absl::Duration report_every = absl::Seconds(30);
  };
  struct Server {
    std::string name;     // "ps-0"
    std::string address;  // for messages
    ParameterService* service;
  };
  struct WrittenSnapshot {
    std::vector<BundleIndexEntry> entries;
    int64_t bytes = 0;
    int64_t longest_cut_microseconds = 0;
  };

  // `servers[s]` will hold shard s. Services, clock and `stop` outlive this.
  ServerGroup(const Options& options, std::vector<Server> servers, const Clock* clock,
              const StopSignal* stop);

  int size() const { return static_cast<int>(servers_.size()); }

  // Waits until every server answers. DEADLINE_EXCEEDED: names those that did not. CANCELLED:
  // stopped. FAILED_PRECONDITION: a server has another configuration.
  absl::Status WaitUntilReachable();

  // "ps-1 at host:port" of each server that has not answered yet, or does not answer any more.
  // Never waits.
  std::vector<std::string> Missing() const;

  // Makes every shard ready. `request` has all but header, hash and shard number. The first error
  // of a server, after its name.
  absl::Status Initialize(const v1::InitializeShardRequest& request);

  // Looks after servers that have been restarted: makes them ready again from `restore_prefix`
  // (empty: initial values). Servers that do not answer are logged once until they do again.
  // Nothing after Finish, when servers end.
  void Supervise(const std::string& restore_prefix);

  // Has every server write its part of the bundle `prefix` of `num_data_shards` data files.
  absl::StatusOr<WrittenSnapshot> WriteSnapshot(const std::string& prefix, int num_data_shards);

  // Tells every server that the job is over. Those that do not answer are logged.
  void Finish();

 private:
  absl::Status ForEach(absl::FunctionRef<absl::Status(int)> call);
  absl::Status Probe(int s);
  void SuperviseServer(int s, const std::string& restore_prefix);
  absl::Status InitializeServer(int s, const std::string& restore_prefix);

  const Options options_;
  const std::vector<Server> servers_;
  const Clock* const clock_;
  const StopSignal* const stop_;

  Mutex mu_;
  ThreadPool pool_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  // By server.
  std::vector<std::atomic<bool>> reachable_;
  v1::InitializeShardRequest initialize_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVER_GROUP_H_
