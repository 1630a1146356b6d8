#include "chief/server_group.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr absl::Duration kProbePause = absl::Milliseconds(100);

absl::Status Named(const ServerGroup::Server& server, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(server.name, ": ", status.message()));
}

}  // namespace

ServerGroup::ServerGroup(const Options& options, std::vector<Server> servers, const Clock* clock,
                         const StopSignal* stop)
    : options_(options),
      servers_(std::move(servers)),
      clock_(clock),
      stop_(stop),
      pool_(static_cast<int>(servers_.size()) - 1),
      reachable_(servers_.size()) {}

absl::Status ServerGroup::ForEach(absl::FunctionRef<absl::Status(int)> call) {
  std::vector<absl::Status> statuses(servers_.size());
  pool_.RunAll(size(), [&](int s) { statuses[static_cast<size_t>(s)] = call(s); });
  for (size_t s = 0; s < statuses.size(); ++s) RETURN_IF_ERROR(Named(servers_[s], statuses[s]));
  return absl::OkStatus();
}

absl::Status ServerGroup::WaitUntilReachable() {
  MutexLock lock(&mu_);
  const absl::Duration start = clock_->Monotonic();
  absl::Duration reported = start;
  while (true) {
    RETURN_IF_ERROR(ForEach([this](int s) { return Probe(s); }));
    const std::vector<std::string> missing = Missing();
    if (missing.empty()) return absl::OkStatus();
    const absl::Duration now = clock_->Monotonic();
    if (now - start >= options_.startup_timeout) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(options_.startup_timeout),
                       " from ", absl::StrJoin(missing, ", ")));
    }
    if (now - reported >= options_.report_every) {
      LogWarning("still waiting for ", absl::StrJoin(missing, ", "));
      reported = now;
    }
    if (stop_->WaitFor(kProbePause)) {
      return absl::CancelledError("while waiting for the parameter servers");
    }
  }
}

absl::Status ServerGroup::Probe(int s) {
  if (reachable_[static_cast<size_t>(s)]) return absl::OkStatus();
  v1::GetShardStatusRequest request;
  *request.mutable_header() = options_.header;
  request.set_chief_address(options_.chief_address);
  v1::ShardStatus status;
  const Server& server = servers_[static_cast<size_t>(s)];
  if (!server.service->GetStatus(request, &status).ok()) return absl::OkStatus();
  if (status.config_hash() != options_.config_hash) {
    return ConfigMismatch(options_.config_hash, status.config_hash(), "the server");
  }
  reachable_[static_cast<size_t>(s)] = true;
  return absl::OkStatus();
}

std::vector<std::string> ServerGroup::Missing() const {
  std::vector<std::string> missing;
  for (size_t s = 0; s < servers_.size(); ++s) {
    if (reachable_[s]) continue;
    missing.push_back(absl::StrCat(servers_[s].name, " at ", servers_[s].address));
  }
  return missing;
}

absl::Status ServerGroup::Initialize(const v1::InitializeShardRequest& request) {
  MutexLock lock(&mu_);
  initialize_ = request;
  *initialize_.mutable_header() = options_.header;
  initialize_.set_config_hash(options_.config_hash);
  return ForEach([&](int s) { return InitializeServer(s, request.restore_prefix()); });
}

absl::Status ServerGroup::InitializeServer(int s, const std::string& restore_prefix) {
  v1::InitializeShardRequest request = initialize_;
  request.set_shard(static_cast<uint32_t>(s));
  request.set_restore_prefix(restore_prefix);
  v1::InitializeShardResponse response;
  return servers_[static_cast<size_t>(s)].service->Initialize(request, &response);
}

void ServerGroup::Supervise(const std::string& restore_prefix) {
  MutexLock lock(&mu_);
  if (finished_) return;
  ForEach([&](int s) {
    SuperviseServer(s, restore_prefix);
    return absl::OkStatus();
  }).IgnoreError();
}

void ServerGroup::SuperviseServer(int s, const std::string& restore_prefix) {
  const Server& server = servers_[static_cast<size_t>(s)];
  std::atomic<bool>& reachable = reachable_[static_cast<size_t>(s)];
  v1::GetShardStatusRequest request;
  *request.mutable_header() = options_.header;
  request.set_chief_address(options_.chief_address);
  v1::ShardStatus shard;
  absl::Status status = server.service->GetStatus(request, &shard);
  if (status.ok() && shard.state() == v1::ShardStatus::EMPTY) {
    LogWarning(server.name, " has been restarted, restoring its shard from ",
               restore_prefix.empty() ? "its initial values" : restore_prefix);
    status = InitializeServer(s, restore_prefix);
  }
  if (!status.ok() && reachable) LogWarning("lost ", server.name, ": ", status.message());
  if (status.ok() && !reachable) LogInfo(server.name, " is back");
  reachable = status.ok();
}

absl::StatusOr<ServerGroup::WrittenSnapshot> ServerGroup::WriteSnapshot(const std::string& prefix,
                                                                        int num_data_shards) {
  MutexLock lock(&mu_);
  std::vector<v1::WriteSnapshotResponse> responses(servers_.size());
  RETURN_IF_ERROR(ForEach([&](int s) {
    v1::WriteSnapshotRequest request;
    *request.mutable_header() = options_.header;
    request.set_data_path(DataPath(prefix, s, num_data_shards));
    request.set_data_shard(static_cast<uint32_t>(s));
    const auto i = static_cast<size_t>(s);
    return servers_[i].service->WriteSnapshot(request, &responses[i]);
  }));
  WrittenSnapshot written;
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

void ServerGroup::Finish() {
  MutexLock lock(&mu_);
  finished_ = true;
  const absl::Status status = ForEach([&](int s) {
    v1::FinishShardRequest request;
    *request.mutable_header() = options_.header;
    v1::FinishShardResponse response;
    return servers_[static_cast<size_t>(s)].service->Finish(request, &response);
  });
  if (!status.ok()) LogWarning("could not tell a server that the job is over: ", status.message());
}

}  // namespace keelson
