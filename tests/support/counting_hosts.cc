#include "tests/support/counting_hosts.h"

#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/client/services/shard_control.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace keelson {
namespace {

constexpr ControlDeadlines kDeadlines = {absl::Milliseconds(1500), absl::Seconds(3)};
constexpr absl::Duration kCommitPause = absl::Milliseconds(20);
constexpr absl::Duration kSettleLimit = absl::Seconds(60);

// So that a test that kills many processes does not take long.
ServerSupervisor::Pauses ShortPauses() {
  ServerSupervisor::Pauses pauses;
  pauses.visit = absl::Milliseconds(50);
  pauses.away = absl::Milliseconds(20);
  pauses.replica = absl::Milliseconds(50);
  return pauses;
}

int64_t CountOther(const std::string& elements, float expected) {
  std::vector<float> values(elements.size() / sizeof(float));
  std::memcpy(values.data(), elements.data(), values.size() * sizeof(float));
  return std::count_if(values.begin(), values.end(),
                       [expected](float value) { return value != expected; });
}

}  // namespace

class CountingHosts::Witness : public BulkHandler {
 public:
  Witness(BulkHandler* handler, MessageCount* messages) : handler_(handler), messages_(messages) {}

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    absl::StatusOr<ByteRope> response = handler_->Bulk(method, std::move(request));
    if (response.ok() && method != BulkMethod::kPull) messages_->Note();
    return response;
  }
  bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) override {
    return handler_->MayAnswer(method, request, std::move(wake));
  }

 private:
  BulkHandler* const handler_;
  MessageCount* const messages_;
};

CountingHosts::Host::~Host() {
  if (rpc != nullptr) rpc->Shutdown(absl::ZeroDuration());
}

CountingHosts::CountingHosts(std::vector<VariableSpec> variables, int hosts)
    : CountingCluster(std::move(variables), hosts),
      hosts_(hosts),
      lost_(hosts),
      kills_to_notice_(hosts) {
  for (int p = 0; p < hosts; ++p) {
    auto link = FaultProxy::Start(port(p));
    EXPECT_TRUE(link.ok()) << link.status();
    links_.push_back(*std::move(link));
    connections_.push_back(ConnectParameterControl(absl::StrCat("worker-", p), links_[p]->address(),
                                                   Credentials(), kDeadlines));
    Start(p);
  }
  ServerGroup::Options options;
  options.header = ChiefHeader();
  options.config_hash = kConfigHash;
  options.replicas = true;
  group_ = std::make_unique<ServerGroup>(options, Servers(), &storage_, Clock::Real(), &stop_);
  group_->Describe(ShardDescription());
  EXPECT_EQ(group_->WaitUntilReachable(), absl::OkStatus());
  EXPECT_EQ(group_->Initialize(std::nullopt, members()), absl::OkStatus());
  supervisor_ =
      std::make_unique<ServerSupervisor>(group_.get(), Job(), Clock::Real(), ShortPauses());
  supervisor_->Start();
  committer_ = Thread([this] { CommitRounds(); });
}

CountingHosts::~CountingHosts() {
  stop_.Raise();
  rounds_.End();
  committer_.Join();
  supervisor_->Stop();
}

void CountingHosts::Start(int process) {
  auto host = std::make_unique<Host>();
  ParameterHandler::Options options;
  options.incarnation = RandomId();
  options.config_hash = kConfigHash;
  options.connect_host = [](const std::string& address) {
    return ConnectParameterControl("the shard's host", address, Credentials(), kDeadlines);
  };
  std::vector<HostedShard> shards;
  for (int i = 0; i < size(); ++i) {
    host->handlers.push_back(
        std::make_unique<ParameterHandler>(options, Clock::Real(), &host->end));
    ParameterHandler* const handler = host->handlers.back().get();
    shards.push_back({static_cast<uint32_t>((process + i) % size()), handler, handler});
  }
  host->shards = std::make_unique<HostedShards>(std::move(shards));
  host->witness = std::make_unique<Witness>(host->shards.get(), &messages_);
  host->service = std::make_unique<ParameterGrpcService>(host->shards.get(), host->witness.get());
  auto rpc =
      RpcServer::Start(absl::StrCat("127.0.0.1:", port(process)), grpc::InsecureServerCredentials(),
                       {host->service.get()}, {host->service->RawMethods()});
  ASSERT_TRUE(rpc.ok()) << rpc.status();
  host->rpc = *std::move(rpc);
  hosts_[process] = std::move(host);
}

ServerGroup::Server CountingHosts::ServerAt(int process, size_t shard) {
  controls_.push_back(
      std::make_unique<ShardControl>(static_cast<uint32_t>(shard), connections_[process]));
  return {absl::StrCat("shard-", shard, " of worker-", process), links_[process]->address(),
          controls_.back().get(), Task{Role::kWorker, process}};
}

std::vector<ServerGroup::Server> CountingHosts::Servers() {
  std::vector<ServerGroup::Server> servers;
  for (int home = 0; home < size(); ++home) {
    const auto shard = static_cast<size_t>(home);
    servers.push_back(ServerAt(home, shard));
    for (int next = 1; next < size(); ++next) {
      servers.back().others.push_back(ServerAt((home + next) % size(), shard));
    }
  }
  return servers;
}

ServerSupervisor::Job CountingHosts::Job() {
  ServerSupervisor::Job job;
  // Of a step at least, so that a shard that is lost is not made anew.
  job.persisted = [this] {
    v1::PersistedJobState persisted;
    persisted.mutable_job()->set_state_version(static_cast<uint64_t>(1 + rounds_.committed()));
    persisted.mutable_job()->set_global_step(1 + rounds_.committed());
    return persisted;
  };
  job.members = [this] {
    MutexLock lock(&mu_);
    return announced_;
  };
  job.member_epoch = [this] {
    MutexLock lock(&mu_);
    return announced_.epoch();
  };
  job.note_stored = [](uint64_t) {};
  job.snapshots = [] { return std::vector<SnapshotInfo>(); };
  job.note_replaced = [](const absl::Status& status) { ADD_FAILURE() << status; };
  job.note_moved = [this](const std::optional<Task>& lost) {
    ++(lost.has_value() ? lost_[lost->index] : went_home_);
  };
  return job;
}

void CountingHosts::CommitRounds() {
  std::optional<SyncRounds::Round> round;
  while (true) {
    // One that a host has committed is to be committed by all.
    const bool begun = round.has_value() && group_->rounds()->committed() >= round->step;
    if (!begun) round = rounds_.WaitForStaged();
    if (!round.has_value() || stop_.raised()) return;
    const absl::Status status =
        group_->rounds()->Commit({round->step, round->attempt, round->contributions}, stop_,
                                 [&] { rounds_.NoteCommitted(*round); });
    if (status.ok()) {
      round.reset();
    } else if (absl::IsFailedPrecondition(status)) {
      rounds_.NoteFailed(*round);
      round.reset();
    } else {
      EXPECT_FALSE(absl::IsAborted(status)) << status;
      stop_.WaitFor(kCommitPause);
    }
  }
}

std::vector<int> CountingHosts::Places() const {
  std::vector<int> places;
  for (size_t s = 0; s < group_->size(); ++s) places.push_back(group_->HostOf(s)->index);
  return places;
}

std::map<size_t, BulkHandler*> CountingHosts::Handlers(int process) const {
  std::map<size_t, BulkHandler*> handlers;
  for (size_t s = 0; s < group_->size(); ++s) handlers[s] = hosts_[process]->witness.get();
  return handlers;
}

bool CountingHosts::MayKill() const {
  for (int p = 0; p < size(); ++p) {
    if (lost_[p] < kills_to_notice_[p]) return false;
    if (group_->Misplaced(static_cast<size_t>(p), /*synchronous=*/true)) return false;
  }
  return true;
}

void CountingHosts::Kill(int process) {
  kills_to_notice_[process] = lost_[process] + 1;
  hosts_[process] = nullptr;
}

int CountingHosts::lost() const { return std::accumulate(lost_.begin(), lost_.end(), 0); }

void CountingHosts::ResetConnections() {
  for (const auto& link : links_) link->Reset();
}

void CountingHosts::Announce() {
  {
    MutexLock lock(&mu_);
    announced_ = members();
  }
  for (const v1::MemberList::Member& member : members().members()) {
    rounds_.Join(member.incarnation());
  }
  supervisor_->PersistNow();
}

std::string CountingHosts::ReadAt(int process, size_t shard) const {
  v1::ReadShardRequest request;
  *request.mutable_header() = ChiefHeader();
  request.mutable_header()->set_chief_term(group_->term());
  request.mutable_header()->set_shard(static_cast<uint32_t>(shard) + 1);
  std::string content;
  const absl::Status status =
      hosts_[process]->shards->ReadShard(request, [&](v1::InitializeChunk chunk) {
        for (v1::InitializeChunk::Block& block : *chunk.mutable_blocks()) block.clear_applied();
        content += chunk.SerializeAsString();
        return absl::OkStatus();
      });
  return status.ok() ? content : "";
}

void CountingHosts::ExpectTruth() {
  ASSERT_TRUE(WaitUntil([this] { return MayKill(); }, kSettleLimit));
  // The last step counts since the first host has committed it.
  const absl::Status settled =
      group_->rounds()->WithoutRounds(kSettleLimit, [] { return absl::OkStatus(); });
  ASSERT_EQ(settled, absl::OkStatus());
  for (int home = 0; home < size(); ++home) {
    const auto shard = static_cast<size_t>(home);
    const std::string content = ReadAt(home, shard);
    int equal = 0;
    for (int p = 0; p < size(); ++p) equal += ReadAt(p, shard) == content ? 1 : 0;
    EXPECT_GE(equal, 2) << "shard-" << shard << " differs from its replica";
    v1::InitializeChunk chunk;  // all of the shard's, put together
    ASSERT_TRUE(chunk.ParseFromString(content));
    EXPECT_EQ(chunk.shard_step(), rounds_.committed());
    EXPECT_EQ(chunk.committed_round(), rounds_.committed() - 1);
    EXPECT_GT(chunk.blocks_size(), 0);
    for (const v1::InitializeChunk::Block& block : chunk.blocks()) {
      EXPECT_EQ(block.updates(), rounds_.committed());
      EXPECT_EQ(CountOther(block.elements(), rounds_.values()), 0) << "of shard-" << shard;
    }
  }
}

}  // namespace keelson
