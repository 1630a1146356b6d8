#include "bench/chief/fake_servers.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/protocol.h"

namespace keelson::bench {
namespace {

v1::ShardStatus EmptyShard(uint64_t config_hash) {
  v1::ShardStatus shard;
  shard.set_state(v1::ShardStatus::EMPTY);
  shard.set_config_hash(config_hash);
  shard.set_committed_round(-1);
  return shard;
}

void TakeMembers(const v1::MemberList& members, v1::ShardStatus* shard) {
  shard->set_member_epoch(members.epoch());
  shard->set_members(members.members_size());
}

// Ends the call. The answer shows the message protocol, as a parameter server's does.
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  context->AddInitialMetadata(kProtocolKey, kProtocol);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

FakeServers::FakeServers(uint64_t config_hash, std::string model_dir)
    : model_dir_(std::move(model_dir)) {
  MutexLock lock(&mu_);
  shards_[""] = EmptyShard(config_hash);
}

absl::StatusOr<std::unique_ptr<FakeServers>> FakeServers::Start(int count, uint64_t config_hash,
                                                                std::string model_dir) {
  std::unique_ptr<FakeServers> servers(new FakeServers(config_hash, std::move(model_dir)));
  RETURN_IF_ERROR(servers->Listen(count));
  return servers;
}

FakeServers::~FakeServers() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

absl::Status FakeServers::Listen(int count) {
  grpc::ServerBuilder builder;
  std::vector<int> ports(count);
  for (int& port : ports) {
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  }
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("the fake servers cannot listen");
  MutexLock lock(&mu_);
  const v1::ShardStatus empty = shards_[""];
  shards_.clear();
  for (const int port : ports) {
    addresses_.push_back(absl::StrCat("127.0.0.1:", port));
    shards_[addresses_.back()] = empty;
  }
  return absl::OkStatus();
}

size_t FakeServers::job_state_bytes() const {
  MutexLock lock(&mu_);
  return job_state_bytes_;
}

v1::ShardStatus& FakeServers::ShardOf(const grpc::CallbackServerContext& context) {
  const grpc::string_ref address = context.ExperimentalGetAuthority();
  return shards_[std::string(address.data(), address.size())];
}

grpc::ServerUnaryReactor* FakeServers::Initialize(grpc::CallbackServerContext* context,
                                                  const v1::InitializeShardRequest* request,
                                                  v1::InitializeShardResponse* response) {
  {
    MutexLock lock(&mu_);
    v1::ShardStatus& shard = ShardOf(*context);
    shard.set_state(v1::ShardStatus::READY);
    shard.set_placement_fingerprint(request->placement_fingerprint());
    shard.set_shard(request->shard());
    shard.set_store_id(request->shard() + 1);
    shard.set_committed_round(request->has_committed_round() ? request->committed_round() : -1);
    if (request->has_members()) TakeMembers(request->members(), &shard);
    *response->mutable_status() = shard;
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* FakeServers::ChiefHeartbeat(grpc::CallbackServerContext* context,
                                                      const v1::ChiefHeartbeatRequest* request,
                                                      v1::ShardStatus* response) {
  {
    MutexLock lock(&mu_);
    v1::ShardStatus& shard = ShardOf(*context);
    shard.set_chief_term(request->header().chief_term());
    if (!request->job_state().empty()) {
      job_state_bytes_ = request->job_state().size();
      // Nobody adopts this job, so its state need not be kept.
      shard.set_job_state_version(request->job_state_version());
      shard.set_job_state_term(request->header().chief_term());
    }
    if (request->has_members()) TakeMembers(request->members(), &shard);
    *response = shard;
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* FakeServers::GetStatus(grpc::CallbackServerContext* context,
                                                 const v1::GetShardStatusRequest*,
                                                 v1::ShardStatus* response) {
  {
    MutexLock lock(&mu_);
    *response = ShardOf(*context);
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* FakeServers::PrepareCut(grpc::CallbackServerContext* context,
                                                  const v1::PrepareCutRequest*,
                                                  v1::PrepareCutResponse* response) {
  {
    MutexLock lock(&mu_);
    response->set_committed_round(ShardOf(*context).committed_round());
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* FakeServers::WriteSnapshot(grpc::CallbackServerContext* context,
                                                     const v1::WriteSnapshotRequest* request,
                                                     v1::WriteSnapshotResponse* response) {
  return Answer(context, WritePart(*request, response));
}

absl::Status FakeServers::WritePart(const v1::WriteSnapshotRequest& request,
                                    v1::WriteSnapshotResponse* response) const {
  const std::string prefix = JoinPath(model_dir_, absl::StrCat("model.ckpt-", request.step()));
  const std::string path =
      PendingPath(DataPath(prefix, request.data_shard(), request.num_data_shards()),
                  request.header().chief_term(), request.cut_id());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<BundleDataWriter> writer,
      BundleDataWriter::Create(FileSystem::Real(), path, size_t{request.data_shard()}));
  const std::vector<float> values = {1, 2, 3};
  RETURN_IF_ERROR(writer->AddTensor(absl::StrCat("v", request.data_shard()), Shape({3}), values));
  ASSIGN_OR_RETURN(const std::vector<BundleIndexEntry> entries, writer->Finish());
  for (const BundleIndexEntry& entry : entries) {
    v1::WriteSnapshotResponse::Entry* const out = response->add_entries();
    out->set_key(entry.key);
    *out->mutable_entry() = entry.entry;
  }
  response->set_bytes_written(writer->bytes_written());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FakeServers::CommitRound(grpc::CallbackServerContext* context,
                                                   const v1::CommitRoundRequest* request,
                                                   v1::CommitRoundResponse*) {
  {
    MutexLock lock(&mu_);
    v1::ShardStatus& shard = ShardOf(*context);
    shard.set_committed_round(request->round());
    shard.set_committed_contributions(request->contributions());
  }
  return Answer(context, absl::OkStatus());
}

}  // namespace keelson::bench
