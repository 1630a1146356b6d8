#include "tests/search/network.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/byte_rope.h"

namespace keelson {
namespace {

// As the gRPC clients have them, the largest shortened so that a schedule sees its end.
constexpr absl::Duration kControlTimeout = absl::Seconds(5);
constexpr absl::Duration kFileTimeout = absl::Seconds(30);
constexpr absl::Duration kLongestReplicaTimeout = absl::Seconds(10);

// Of the processes at kSimMachine, with a few more than can be in use.
constexpr int kFirstPort = 5001;
constexpr size_t kSparePorts = 3;

// Most messages are fast.
constexpr absl::Duration kFast = absl::Milliseconds(2);

absl::Duration Beyond(const google::protobuf::Duration& wait) {
  return kControlTimeout + absl::Seconds(wait.seconds()) + absl::Nanoseconds(wait.nanos());
}

}  // namespace

SimNetwork::SimNetwork(FiberScheduler* scheduler, size_t nodes, AtPoint at)
    : scheduler_(scheduler),
      at_(std::move(at)),
      nodes_(nodes),
      cut_(nodes * nodes),
      late_(nodes * nodes) {}

SimTarget SimNetwork::TargetAt(absl::string_view address) const {
  const auto node = std::find(addresses_.begin(), addresses_.end(), address);
  if (node != addresses_.end()) return {static_cast<size_t>(node - addresses_.begin())};
  return {0, address.empty() ? "nowhere" : std::string(address)};
}

SimProcess* SimNetwork::ProcessAt(const SimTarget& target) const {
  if (target.address.empty()) return nodes_[target.node];
  const auto listener = listeners_.find(target.address);
  return listener == listeners_.end() ? nullptr : listener->second;
}

int SimNetwork::ListenAnywhere(SimProcess* process) {
  while (true) {
    const int port =
        kFirstPort + static_cast<int>(scheduler_->Random() % (nodes_.size() + kSparePorts));
    const std::string address = absl::StrCat(kSimMachine, ":", port);
    if (!listeners_.try_emplace(address, process).second) continue;
    process->address = address;
    return port;
  }
}

absl::Duration SimNetwork::Latency(size_t from, size_t to) {
  const absl::Duration late = late_[from * nodes_.size() + to];
  if (late > absl::ZeroDuration()) return scheduler_->Between(absl::Microseconds(20), late);
  const bool slow = scheduler_->Chance(slow_share_);
  return scheduler_->Between(absl::Microseconds(20), slow ? slow_ : kFast);
}

bool SimNetwork::Arrives(size_t from, size_t to) {
  return !cut_[from * nodes_.size() + to] && !scheduler_->Chance(loss_);
}

void SimNetwork::End(const std::shared_ptr<Exchange>& exchange, absl::Status status) {
  if (exchange->ended) return;
  exchange->ended = true;
  std::erase(under_way_, exchange);
  if (exchange->caller->alive) exchange->done(std::move(status));
}

void SimNetwork::Reset(const std::shared_ptr<Exchange>& exchange) {
  // Of the connection's own peer, whose messages come from it.
  const size_t caller = exchange->caller->node;
  scheduler_->At(Latency(caller, caller),
                 [this, exchange] { End(exchange, absl::UnavailableError(kConnectionReset)); });
}

void SimNetwork::Forget(SimProcess* process) {
  for (const std::shared_ptr<Exchange>& exchange : under_way_) {
    if (exchange->callee == process) Reset(exchange);
  }
  std::erase_if(under_way_, [&](const auto& exchange) { return exchange->caller == process; });
  for (SimProcess*& node : nodes_) {
    if (node == process) node = nullptr;
  }
  std::erase_if(listeners_, [&](const auto& listener) { return listener.second == process; });
}

void SimNetwork::Begin(SimProcess* caller, const SimTarget& callee, absl::string_view what,
                       absl::Duration timeout, bool repeatable, Execution execute,
                       std::function<void(absl::Status)> done) {
  at_(caller, {what, SimPoint::When::kSend});
  const FiberScheduler::Atomic atomic(scheduler_);
  auto exchange = std::make_shared<Exchange>();
  exchange->caller = caller;
  exchange->done = std::move(done);
  under_way_.push_back(exchange);
  scheduler_->At(timeout,
                 [this, exchange] { End(exchange, absl::DeadlineExceededError(kNoAnswer)); });
  const SimProcess* const listener = ProcessAt(callee);
  const size_t to = listener != nullptr ? listener->node : callee.node;
  const int copies = repeatable && scheduler_->Chance(repetition_) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (!Arrives(caller->node, to)) continue;
    scheduler_->At(Latency(caller->node, to), [this, exchange, callee, what, timeout, execute] {
      Deliver(exchange, callee, what, timeout, execute);
    });
  }
}

void SimNetwork::Deliver(const std::shared_ptr<Exchange>& exchange, const SimTarget& callee,
                         absl::string_view what, absl::Duration timeout, const Execution& execute) {
  SimProcess* const process = ProcessAt(callee);
  if (process == nullptr) return Reset(exchange);
  exchange->callee = process;
  scheduler_->StartIn(process->group, [this, exchange, process, what, timeout, execute] {
    at_(process, {what, SimPoint::When::kExecute});
    const int64_t begun = watch_.on_execute(*process, what, timeout);
    absl::Status status = execute(process);
    watch_.on_done(begun);
    if (status.ok()) watch_.on_executed(*exchange->caller, *process, what, begun);
    at_(process, {what, SimPoint::When::kExecuted});
    const FiberScheduler::Atomic atomic(scheduler_);
    if (!Arrives(process->node, exchange->caller->node)) return;
    scheduler_->At(Latency(process->node, exchange->caller->node),
                   [this, exchange, status] { End(exchange, status); });
  });
}

absl::Status SimNetwork::Call(SimProcess* caller, const SimTarget& callee, absl::string_view what,
                              absl::Duration timeout, Execution execute) {
  struct Outcome {
    std::optional<absl::Status> status;
  };
  auto outcome = std::make_shared<Outcome>();
  Begin(caller, callee, what, timeout, /*repeatable=*/false, std::move(execute),
        [this, outcome](absl::Status status) {
          outcome->status = std::move(status);
          scheduler_->Wake(outcome.get());
        });
  while (!outcome->status.has_value()) {
    scheduler_->WaitFor(outcome.get(), absl::InfiniteDuration());
  }
  if (outcome->status->ok()) watch_.on_answer(*caller, what);
  at_(caller, {what, SimPoint::When::kAnswer});
  return *outcome->status;
}

absl::Status SimNetwork::CallWithin(SimProcess* process, absl::string_view what,
                                    absl::FunctionRef<absl::Status()> execute) {
  at_(process, {what, SimPoint::When::kSend});
  at_(process, {what, SimPoint::When::kExecute});
  const int64_t begun = watch_.on_execute(*process, what, absl::InfiniteDuration());
  absl::Status status = execute();
  watch_.on_done(begun);
  if (status.ok()) {
    watch_.on_executed(*process, *process, what, begun);
    watch_.on_answer(*process, what);
  }
  at_(process, {what, SimPoint::When::kExecuted});
  at_(process, {what, SimPoint::When::kAnswer});
  return status;
}

// ---- The chief.

template <typename Request, typename Response>
absl::Status SimChiefService::Forward(
    absl::string_view what, absl::Status (ChiefService::*method)(const Request&, Response*),
    const Request& request, Response* response, absl::Duration timeout) {
  auto message = std::make_shared<std::pair<Request, Response>>(request, Response());
  const absl::Status status =
      network_->Call(caller_, {chief_}, what, timeout, [message, method](SimProcess* callee) {
        return (callee->chief->*method)(message->first, &message->second);
      });
  if (status.ok()) *response = message->second;
  return status;
}

absl::Status SimChiefService::Register(const v1::RegisterRequest& request,
                                       v1::RegisterResponse* response) {
  return Forward("Register", &ChiefService::Register, request, response, kControlTimeout);
}
absl::Status SimChiefService::GetModel(const v1::GetModelRequest& request,
                                       v1::GetModelResponse* response) {
  return Forward("GetModel", &ChiefService::GetModel, request, response,
                 Beyond(request.max_wait()));
}
absl::Status SimChiefService::Heartbeat(const v1::HeartbeatRequest& request,
                                        v1::HeartbeatResponse* response) {
  return Forward("Heartbeat", &ChiefService::Heartbeat, request, response, kControlTimeout);
}
absl::Status SimChiefService::AcquireWork(const v1::AcquireWorkRequest& request,
                                          v1::AcquireWorkResponse* response) {
  auto work = std::make_shared<v1::AcquireWorkResponse>();
  const absl::Status status = network_->Call(
      caller_, {chief_}, "AcquireWork", Beyond(request.max_wait()),
      [network = network_, request, work](SimProcess* callee) {
        const absl::Status granted = callee->chief->AcquireWork(request, work.get());
        if (granted.ok()) {
          network->watch().on_granted(*callee, request.header().incarnation(), *work);
        }
        return granted;
      });
  if (status.ok()) *response = *work;
  return status;
}
absl::Status SimChiefService::Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) {
  return Forward("Admit", &ChiefService::Admit, request, response, kControlTimeout);
}
absl::Status SimChiefService::SetMode(const v1::SetModeRequest& request,
                                      v1::SetModeResponse* response) {
  return Forward("SetMode", &ChiefService::SetMode, request, response, kControlTimeout);
}
absl::Status SimChiefService::EndTraining(const v1::EndTrainingRequest& request,
                                          v1::EndTrainingResponse* response) {
  return Forward("EndTraining", &ChiefService::EndTraining, request, response, kControlTimeout);
}
absl::Status SimChiefService::SaveSnapshot(const v1::SaveSnapshotRequest& request,
                                           v1::SaveSnapshotResponse* response) {
  return Forward("SaveSnapshot", &ChiefService::SaveSnapshot, request, response, kControlTimeout);
}
absl::Status SimChiefService::Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) {
  return Forward("Leave", &ChiefService::Leave, request, response, kControlTimeout);
}
absl::Status SimChiefService::AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                                    v1::AcknowledgeEvaluationResponse* response) {
  if (on_acknowledge_ != nullptr) on_acknowledge_(request);
  return Forward("AcknowledgeEvaluation", &ChiefService::AcknowledgeEvaluation, request, response,
                 kControlTimeout);
}
absl::Status SimChiefService::ProposeJob(const v1::ProposeJobRequest& request,
                                         v1::ProposeJobResponse* response) {
  return Forward("ProposeJob", &ChiefService::ProposeJob, request, response, kControlTimeout);
}
absl::Status SimChiefService::GetJobStatus(const v1::GetJobStatusRequest& request,
                                           v1::JobStatus* response) {
  return Forward("GetJobStatus", &ChiefService::GetJobStatus, request, response, kControlTimeout);
}

absl::Status SimChiefService::AnnounceHost(const v1::AnnounceHostRequest& request,
                                           v1::AnnounceHostResponse* response) {
  auto message = std::make_shared<std::pair<v1::AnnounceHostRequest, v1::AnnounceHostResponse>>(
      request, v1::AnnounceHostResponse());
  const absl::Status status = network_->Call(
      caller_, {chief_}, "AnnounceHost", kControlTimeout, [message](SimProcess* callee) {
        return callee->announced->Announce(message->first, kSimMachine, &message->second);
      });
  if (status.ok()) *response = message->second;
  return status;
}

// ---- A server's control calls.

ControlDeadlines SimParameterControl::UsualDeadlines() { return {kControlTimeout, kFileTimeout}; }

template <typename Request, typename Response>
absl::Status SimParameterControl::Forward(
    absl::string_view what, absl::Status (ParameterControl::*method)(const Request&, Response*),
    const Request& request, Response* response, absl::Duration timeout) {
  if (route_.own != nullptr) {
    return network_->CallWithin(caller_, what,
                                [&] { return (route_.own->*method)(request, response); });
  }
  auto message = std::make_shared<std::pair<Request, Response>>(request, Response());
  const absl::Status status =
      network_->Call(caller_, route_.target, what, timeout, [message, method](SimProcess* callee) {
        return (callee->control->*method)(message->first, &message->second);
      });
  if (status.ok()) *response = std::move(message->second);
  return status;
}

template <typename Chunk, typename Request>
absl::Status SimParameterControl::Read(
    absl::string_view what,
    absl::Status (ParameterControl::*method)(const Request&,
                                             absl::FunctionRef<absl::Status(Chunk)>),
    const Request& request, absl::FunctionRef<absl::Status(Chunk)> sink, absl::Duration timeout) {
  if (route_.own != nullptr) {
    return network_->CallWithin(caller_, what,
                                [&] { return (route_.own->*method)(request, sink); });
  }
  struct Message {
    Request request;
    std::deque<Chunk> chunks;
  };
  auto message = std::make_shared<Message>();
  message->request = request;
  RETURN_IF_ERROR(
      network_->Call(caller_, route_.target, what, timeout, [message, method](SimProcess* callee) {
        return (callee->control->*method)(message->request, [&](Chunk chunk) {
          message->chunks.push_back(std::move(chunk));
          return absl::OkStatus();
        });
      }));
  for (Chunk& chunk : message->chunks) RETURN_IF_ERROR(sink(std::move(chunk)));
  return absl::OkStatus();
}

absl::Duration SimParameterControl::ReplicaTimeout() const {
  return std::min(route_.deadlines.commit, kLongestReplicaTimeout);
}

template <typename Call>
absl::Status SimParameterControl::Watched(absl::string_view what, Call call) {
  const SimProcess* const host = Host();
  const absl::Status status = call();
  NoteEnd(host, what, status.ok());
  return status;
}

template <typename Call>
absl::Status SimParameterControl::WatchedStart(const v1::InitializeShardRequest& start, Call call) {
  std::function<void()> if_taken;
  if (watch_.on_initialize != nullptr) if_taken = watch_.on_initialize(start);
  const absl::Status status = Watched("Initialize", call);
  if (if_taken != nullptr && !absl::IsAborted(status)) if_taken();
  return status;
}

absl::Status SimParameterControl::Initialize(const v1::InitializeShardRequest& request,
                                             v1::InitializeShardResponse* response) {
  return WatchedStart(request, [&] {
    return Forward("Initialize", &ParameterControl::Initialize, request, response, kFileTimeout);
  });
}
absl::Status SimParameterControl::PrepareCut(const v1::PrepareCutRequest& request,
                                             v1::PrepareCutResponse* response) {
  return Forward("PrepareCut", &ParameterControl::PrepareCut, request, response, kControlTimeout);
}

absl::Status SimParameterControl::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                                v1::WriteSnapshotResponse* response) {
  return Forward("WriteSnapshot", &ParameterControl::WriteSnapshot, request, response,
                 kFileTimeout);
}
absl::Status SimParameterControl::StreamSnapshot(const v1::StreamSnapshotRequest& request,
                                                 ByteSink sink,
                                                 v1::WriteSnapshotResponse* response) {
  if (route_.own != nullptr) {
    return network_->CallWithin(caller_, "StreamSnapshot", [&] {
      return route_.own->StreamSnapshot(request, sink, response);
    });
  }
  struct Message {
    v1::StreamSnapshotRequest request;
    v1::WriteSnapshotResponse response;
    std::string bytes;
  };
  auto message = std::make_shared<Message>();
  message->request = request;
  const absl::Status status = network_->Call(
      caller_, route_.target, "StreamSnapshot", kFileTimeout, [message](SimProcess* callee) {
        return callee->control->StreamSnapshot(
            message->request,
            [&](absl::string_view bytes) {
              message->bytes.append(bytes.data(), bytes.size());
              return absl::OkStatus();
            },
            &message->response);
      });
  if (!status.ok()) return status;
  *response = message->response;
  return message->bytes.empty() ? status : sink(message->bytes);
}

absl::Status SimParameterControl::InitializeStreamed(const v1::InitializeChunk& first,
                                                     ChunkSource next,
                                                     v1::InitializeShardResponse* response) {
  return WatchedStart(first.start(), [&] { return SendStreamed(first, next, response); });
}

absl::Status SimParameterControl::SendStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                               v1::InitializeShardResponse* response) {
  if (route_.own != nullptr) {
    return network_->CallWithin(caller_, "InitializeStreamed", [&] {
      return route_.own->InitializeStreamed(first, next, response);
    });
  }
  struct Message {
    v1::InitializeChunk first;
    std::deque<v1::InitializeChunk> rest;
    v1::InitializeShardResponse response;
  };
  auto message = std::make_shared<Message>();
  message->first = first;
  while (true) {
    absl::StatusOr<std::optional<v1::InitializeChunk>> chunk = next();
    if (!chunk.ok()) return chunk.status();
    if (!chunk->has_value()) break;
    message->rest.push_back(**std::move(chunk));
  }
  const absl::Status status = network_->Call(
      caller_, route_.target, "InitializeStreamed", kFileTimeout, [message](SimProcess* callee) {
        return callee->control->InitializeStreamed(
            message->first,
            [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
              if (message->rest.empty()) return std::nullopt;
              std::optional<v1::InitializeChunk> chunk = std::move(message->rest.front());
              message->rest.pop_front();
              return chunk;
            },
            &message->response);
      });
  if (status.ok()) *response = message->response;
  return status;
}

absl::Status SimParameterControl::ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                                 v1::ShardStatus* response) {
  if (watch_.on_heartbeat != nullptr) watch_.on_heartbeat(request);
  const SimProcess* const host = Host();
  const absl::Status status = Forward("ChiefHeartbeat", &ParameterControl::ChiefHeartbeat, request,
                                      response, route_.deadlines.heartbeat);
  NoteEnd(host, "ChiefHeartbeat", status.ok() && response->state() == v1::ShardStatus::READY);
  return status;
}
absl::Status SimParameterControl::CommitRound(const v1::CommitRoundRequest& request,
                                              v1::CommitRoundResponse* response) {
  return Watched("CommitRound", [&] {
    return Forward("CommitRound", &ParameterControl::CommitRound, request, response,
                   route_.deadlines.commit);
  });
}
absl::Status SimParameterControl::ReplicateShard(const v1::ReplicateShardRequest& request,
                                                 v1::InitializeShardResponse* response) {
  return Watched("ReplicateShard", [&] {
    return Forward("ReplicateShard", &ParameterControl::ReplicateShard, request, response,
                   kFileTimeout);
  });
}
absl::Status SimParameterControl::ReplicateRound(const v1::ReplicateRoundRequest& request,
                                                 v1::ReplicateRoundResponse* response) {
  return Watched("ReplicateRound", [&] {
    return Forward("ReplicateRound", &ParameterControl::ReplicateRound, request, response,
                   ReplicaTimeout());
  });
}
absl::Status SimParameterControl::ReadShard(const v1::ReadShardRequest& request, ShardSink sink) {
  return Read<v1::InitializeChunk>("ReadShard", &ParameterControl::ReadShard, request, sink,
                                   kFileTimeout);
}
absl::Status SimParameterControl::ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
  return Forward("ReadRound", &ParameterControl::ReadRound, request, part, ReplicaTimeout());
}
absl::Status SimParameterControl::GetStatus(const v1::GetShardStatusRequest& request,
                                            v1::ShardStatus* response) {
  return Watched("GetStatus", [&] {
    return Forward("GetStatus", &ParameterControl::GetStatus, request, response,
                   route_.deadlines.heartbeat);
  });
}
absl::Status SimParameterControl::FindChief(const v1::FindChiefRequest& request,
                                            v1::FindChiefResponse* response) {
  return Forward("FindChief", &ParameterControl::FindChief, request, response, kControlTimeout);
}
absl::Status SimParameterControl::Finish(const v1::FinishShardRequest& request,
                                         v1::FinishShardResponse* response) {
  return Watched("Finish", [&] {
    return Forward("Finish", &ParameterControl::Finish, request, response, kControlTimeout);
  });
}

// ---- Bulk calls.

namespace {

// As a server does: waits until the call can be answered.
void AwaitTurn(BulkHandler* handler, BulkMethod method, const ByteRope& request) {
  const auto woken = std::make_shared<StopSignal>();
  while (!handler->MayAnswer(method, request, [woken] { woken->Raise(); })) woken->Wait();
}

class SimBulkTransport : public BulkTransport {
 public:
  SimBulkTransport(SimNetwork* network, SimProcess* caller, std::vector<SimTarget> servers)
      : network_(network),
        caller_(caller),
        servers_(std::move(servers)),
        inbox_(std::make_shared<Inbox>()) {}
  ~SimBulkTransport() override { inbox_->closed = true; }

  size_t num_shards() const override { return servers_.size(); }

  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override {
    auto message = std::make_shared<const std::string>(request.ToString());
    auto response = std::make_shared<std::string>();
    const uint64_t number = inbox_->next++;
    inbox_->under_way[number] = {tag, shard, method};
    network_->Begin(
        caller_, servers_[shard], BulkMethodName(method), timeout, /*repeatable=*/true,
        [network = network_, message, response, method](SimProcess* callee) -> absl::Status {
          ByteRope bytes;
          bytes.AppendCopy(*message);
          AwaitTurn(callee->bulk, method, bytes);
          const int64_t begun = network->watch().on_bulk();
          absl::StatusOr<ByteRope> answer = callee->bulk->Bulk(method, std::move(bytes));
          if (answer.ok()) *response = answer->ToString();
          if (answer.ok() && method != BulkMethod::kPull) {
            network->watch().on_pushed(*callee, begun, *message, *answer);
          }
          return answer.status();
        },
        [this, inbox = inbox_, response, number](absl::Status status) {
          if (!inbox->closed) Complete(number, std::move(status), *response);
        });
  }

  std::optional<BulkCompletion> Next(absl::Duration timeout) override {
    FiberScheduler* const scheduler = network_->scheduler();
    if (inbox_->completed.empty() && !inbox_->woken && timeout > absl::ZeroDuration()) {
      scheduler->WaitFor(inbox_.get(), timeout);
    } else {
      scheduler->Pause();
    }
    if (inbox_->completed.empty()) {
      inbox_->woken = false;
      return std::nullopt;
    }
    network_->At(caller_,
                 {BulkMethodName(inbox_->completed.front().method), SimPoint::When::kAnswer});
    std::optional<BulkCompletion> completion = std::move(inbox_->completed.front().completion);
    inbox_->completed.pop_front();
    return completion;
  }

  void Wake() override {
    inbox_->woken = true;
    network_->scheduler()->Wake(inbox_.get());
  }

  void Reset(size_t shard) override {
    std::vector<uint64_t> numbers;
    for (const auto& [number, call] : inbox_->under_way) {
      if (call.shard == shard) numbers.push_back(number);
    }
    for (const uint64_t number : numbers) Complete(number, absl::UnavailableError("reset"), "");
  }

  void Redirect(size_t shard, const BulkServer& server) override {
    Reset(shard);
    servers_[shard] = network_->TargetAt(server.address);
  }

 private:
  struct UnderWay {
    uint64_t tag = 0;
    size_t shard = 0;
    BulkMethod method = BulkMethod::kPull;
  };
  struct Completed {
    BulkMethod method;
    BulkCompletion completion;
  };
  struct Inbox {
    bool closed = false;
    bool woken = false;
    uint64_t next = 0;
    std::map<uint64_t, UnderWay> under_way;
    std::deque<Completed> completed;
  };

  void Complete(uint64_t number, absl::Status status, const std::string& response) {
    const auto call = inbox_->under_way.find(number);
    if (call == inbox_->under_way.end()) return;
    BulkCompletion completion;
    completion.tag = call->second.tag;
    completion.status = std::move(status);
    if (completion.status.ok()) completion.response.AppendCopy(response);
    inbox_->completed.push_back({call->second.method, std::move(completion)});
    inbox_->under_way.erase(call);
    network_->scheduler()->Wake(inbox_.get());
  }

  SimNetwork* const network_;
  SimProcess* const caller_;
  std::vector<SimTarget> servers_;
  const std::shared_ptr<Inbox> inbox_;
};

class SimOwnShards : public BulkHandler {
 public:
  SimOwnShards(SimNetwork* network, SimProcess* process, BulkHandler* shards)
      : network_(network), process_(process), shards_(shards) {}

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    const std::string message = request.ToString();
    ByteRope answer;
    RETURN_IF_ERROR(network_->CallWithin(process_, BulkMethodName(method), [&]() -> absl::Status {
      const int64_t begun = network_->watch().on_bulk();
      ASSIGN_OR_RETURN(answer, shards_->Bulk(method, std::move(request)));
      if (method != BulkMethod::kPull)
        network_->watch().on_pushed(*process_, begun, message, answer);
      return absl::OkStatus();
    }));
    return answer;
  }
  bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) override {
    return shards_->MayAnswer(method, request, std::move(wake));
  }

 private:
  SimNetwork* const network_;
  SimProcess* const process_;
  BulkHandler* const shards_;
};

}  // namespace

std::unique_ptr<BulkHandler> MakeSimOwnShards(SimNetwork* network, SimProcess* process,
                                              BulkHandler* shards) {
  return std::make_unique<SimOwnShards>(network, process, shards);
}

std::unique_ptr<BulkTransport> MakeSimBulkTransport(SimNetwork* network, SimProcess* caller,
                                                    std::vector<SimTarget> servers) {
  return std::make_unique<SimBulkTransport>(network, caller, std::move(servers));
}

}  // namespace keelson
