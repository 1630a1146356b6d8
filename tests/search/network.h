// A simulated network between simulated processes, and the services as their callers see them
// through it.
#ifndef KEELSON_TESTS_SEARCH_NETWORK_H_
#define KEELSON_TESTS_SEARCH_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/servers/announced_hosts.h"
#include "core/base/stop_signal.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/client/services/parameter_control.h"
#include "core/client/transport/bulk_transport.h"
#include "core/wire/byte_rope.h"
#include "keelson/v1/chief_service.pb.h"
#include "tests/search/fiber_scheduler.h"

namespace keelson {

// The texts of errors for which a peer or the network is the cause.
inline constexpr char kNoAnswer[] = "no answer";
inline constexpr char kConnectionReset[] = "connection reset";
// Where the processes are that listen at addresses of their own.
inline constexpr char kSimMachine[] = "10.0.0.1";

// One life of a node; a group of the scheduler's.
struct SimProcess {
  size_t node = 0;
  int group = 0;
  bool alive = true;
  absl::Duration started;
  // Asks it to stop; null: it knows no such request yet, or any more.
  StopSignal* stop = nullptr;
  // What it serves, while it does.
  ChiefService* chief = nullptr;
  ParameterControl* control = nullptr;
  BulkHandler* bulk = nullptr;
  AnnouncedHosts* announced = nullptr;
  // Where it listens, if that is an address of its own (SimNetwork::ListenAnywhere).
  std::string address;
};

// Where a message goes.
struct SimTarget {
  // Its process of the time at which the message arrives.
  size_t node = 0;
  // Not empty: whichever process listens there then, instead (SimNetwork::ListenAnywhere).
  std::string address = {};
};

// Where a process is when a fault may befall it.
struct SimPoint {
  // A message is sent, executed, and answered; an operation on files is done.
  enum class When { kSend, kExecute, kExecuted, kAnswer, kBefore, kAfter };
  absl::string_view what;  // "CommitRound", "rename"
  When when = When::kSend;
};

// Who looks on. Nothing in it waits.
struct SimWatch {
  // A callee is about to execute a call, whose caller gives up after `timeout`. Returns what
  // `on_executed` gets when that was successful, and `on_done` in any case.
  std::function<int64_t(const SimProcess& callee, absl::string_view what, absl::Duration timeout)>
      on_execute;
  std::function<void(const SimProcess& caller, const SimProcess& callee, absl::string_view what,
                     int64_t begun)>
      on_executed;
  std::function<void(int64_t begun)> on_done;
  // The caller learns that a call of it was successful.
  std::function<void(const SimProcess& caller, absl::string_view what)> on_answer;
  // The chief has given a worker work.
  std::function<void(const SimProcess& chief, uint64_t incarnation, const v1::AcquireWorkResponse&)>
      on_granted;
  // A server is about to execute a bulk call, and has executed a push.
  // `begun`: what on_bulk has returned.
  std::function<int64_t()> on_bulk;
  std::function<void(const SimProcess& host, int64_t begun, const std::string& request,
                     const ByteRope& answer)>
      on_pushed;
};

// Calls are two messages. Each takes a while of its own, so they overtake one another; it may be
// lost, and whoever waits for it learns that by the call's deadline. A process that ends resets its
// connections: callers get UNAVAILABLE, some of them after the call was executed.
class SimNetwork {
 public:
  // All outlive the network. `at` is called by each process before and after each message that it
  // sends or executes; it may kill it.
  using AtPoint = std::function<void(SimProcess*, const SimPoint&)>;
  SimNetwork(FiberScheduler* scheduler, size_t nodes, AtPoint at);
  // Before the first call.
  void SetWatch(SimWatch watch) { watch_ = std::move(watch); }
  // The addresses of the nodes, before the first call.
  void SetAddresses(std::vector<std::string> addresses) { addresses_ = std::move(addresses); }
  // A node's address leads to that, any other one to the process that listens there, if one does.
  SimTarget TargetAt(absl::string_view address) const;
  const SimWatch& watch() const { return watch_; }

  // The process that a node's address leads to now; null: nothing listens.
  void Connect(size_t node, SimProcess* process) { nodes_[node] = process; }
  // From now on the process is reached at a port of kSimMachine that no other one has: any of a
  // few, so that it may be one at which another process was. Returns the port.
  int ListenAnywhere(SimProcess* process);
  // Null: nothing listens.
  SimProcess* ProcessAt(const SimTarget& target) const;
  // Ends its calls at others, and those of others at it.
  void Forget(SimProcess* process);

  // From now on no message gets from one node to the other.
  void Cut(size_t from, size_t to, bool cut) { cut_[from * nodes_.size() + to] = cut; }
  // From now on each takes up to this time; none: as others do.
  void SetLate(size_t from, size_t to, absl::Duration most) {
    late_[from * nodes_.size() + to] = most;
  }
  // This share of the messages takes up to `slow`, and so overtakes many others.
  void SetDelays(double slow_share, absl::Duration slow) {
    slow_share_ = slow_share;
    slow_ = slow;
  }
  // The probability that a message is lost, or that a bulk message is executed twice.
  void SetLoss(double loss) { loss_ = loss; }
  void SetRepetition(double repetition) { repetition_ = repetition; }

  using Execution = std::function<absl::Status(SimProcess* callee)>;
  // Calls `done`, in a timer, with the outcome; unless the caller ends first. `execute` runs in a
  // thread of the callee.
  void Begin(SimProcess* caller, const SimTarget& callee, absl::string_view what,
             absl::Duration timeout, bool repeatable, Execution execute,
             std::function<void(absl::Status)> done);
  // Waits for the outcome.
  absl::Status Call(SimProcess* caller, const SimTarget& callee, absl::string_view what,
                    absl::Duration timeout, Execution execute);

  // A process calls what it serves itself: no message travels.
  absl::Status CallWithin(SimProcess* process, absl::string_view what,
                          absl::FunctionRef<absl::Status()> execute);

  FiberScheduler* scheduler() const { return scheduler_; }
  void At(SimProcess* process, const SimPoint& point) const { at_(process, point); }

 private:
  struct Exchange {
    SimProcess* caller = nullptr;
    SimProcess* callee = nullptr;  // while it may be executed there
    bool ended = false;
    std::function<void(absl::Status)> done;
  };

  void End(const std::shared_ptr<Exchange>& exchange, absl::Status status);
  void Deliver(const std::shared_ptr<Exchange>& exchange, const SimTarget& callee,
               absl::string_view what, absl::Duration timeout, const Execution& execute);
  void Reset(const std::shared_ptr<Exchange>& exchange);
  bool Arrives(size_t from, size_t to);
  absl::Duration Latency(size_t from, size_t to);

  FiberScheduler* const scheduler_;
  const AtPoint at_;
  SimWatch watch_;
  std::vector<std::string> addresses_;
  std::vector<SimProcess*> nodes_;
  std::map<std::string, SimProcess*> listeners_;  // by address
  std::vector<bool> cut_;
  std::vector<absl::Duration> late_;
  double loss_ = 0;
  double slow_share_ = 0;
  absl::Duration slow_;
  double repetition_ = 0;
  std::vector<std::shared_ptr<Exchange>> under_way_;
};

// The chief, as `caller` sees it. `on_acknowledge` (may be null) is called with each evaluation
// that is acknowledged.
class SimChiefService : public ChiefService {
 public:
  using OnAcknowledge = std::function<void(const v1::AcknowledgeEvaluationRequest&)>;

  SimChiefService(SimNetwork* network, SimProcess* caller, size_t chief,
                  OnAcknowledge on_acknowledge = nullptr)
      : network_(network),
        caller_(caller),
        chief_(chief),
        on_acknowledge_(std::move(on_acknowledge)) {}

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override;
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override;
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override;
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override;
  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override;
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override;
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse* response) override;
  absl::Status SaveSnapshot(const v1::SaveSnapshotRequest& request,
                            v1::SaveSnapshotResponse* response) override;
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override;
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override;
  absl::Status ProposeJob(const v1::ProposeJobRequest& request,
                          v1::ProposeJobResponse* response) override;
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override;
  absl::Status AnnounceHost(const v1::AnnounceHostRequest& request,
                            v1::AnnounceHostResponse* response) override;

 private:
  template <typename Request, typename Response>
  absl::Status Forward(absl::string_view what,
                       absl::Status (ChiefService::*method)(const Request&, Response*),
                       const Request& request, Response* response, absl::Duration timeout);

  SimNetwork* const network_;
  SimProcess* const caller_;
  const size_t chief_;
  const OnAcknowledge on_acknowledge_;
};

// Who looks on at the control calls of one caller to one shard's host. Each may be null.
struct SimControlWatch {
  // A request to make a shard is about to be sent. What it returns is called unless the host obeys
  // another chief, and refuses.
  std::function<std::function<void()>(const v1::InitializeShardRequest&)> on_initialize;
  // A heartbeat is about to be sent.
  std::function<void(const v1::ChiefHeartbeatRequest&)> on_heartbeat;
  // A call has ended for the caller. `host`: the process to which the address led when it was sent;
  // null: none. `done`: it was successful, and, if it was a heartbeat, the shard is there.
  std::function<void(const SimProcess* host, absl::string_view what, bool done)> on_end;
};

// The host of a shard, or a server, as its caller sees it.
class SimParameterControl : public ParameterControl {
 public:
  struct Route {
    SimTarget target;
    // What serves the shard in the caller's own process; null: it is another one.
    ParameterControl* own = nullptr;
    ControlDeadlines deadlines = UsualDeadlines();
  };
  // As the gRPC clients have them, the largest shortened so that a schedule sees its end.
  static ControlDeadlines UsualDeadlines();

  SimParameterControl(SimNetwork* network, SimProcess* caller, const Route& route,
                      SimControlWatch watch = {})
      : network_(network), caller_(caller), route_(route), watch_(std::move(watch)) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                          v1::PrepareCutResponse* response) override;
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  // The bytes arrive when all were sent.
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                              v1::ShardStatus* response) override;
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override;
  absl::Status ReplicateShard(const v1::ReplicateShardRequest& request,
                              v1::InitializeShardResponse* response) override;
  absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request,
                              v1::ReplicateRoundResponse* response) override;
  // The messages of these, too, arrive when all were sent.
  absl::Status ReadShard(const v1::ReadShardRequest& request, ShardSink sink) override;
  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;

 private:
  template <typename Request, typename Response>
  absl::Status Forward(absl::string_view what,
                       absl::Status (ParameterControl::*method)(const Request&, Response*),
                       const Request& request, Response* response, absl::Duration timeout);
  template <typename Chunk, typename Request>
  absl::Status Read(absl::string_view what,
                    absl::Status (ParameterControl::*method)(
                        const Request&, absl::FunctionRef<absl::Status(Chunk)>),
                    const Request& request, absl::FunctionRef<absl::Status(Chunk)> sink,
                    absl::Duration timeout);
  template <typename Call>
  absl::Status Watched(absl::string_view what, Call call);
  // The same for a call that makes a shard.
  template <typename Call>
  absl::Status WatchedStart(const v1::InitializeShardRequest& start, Call call);
  absl::Status SendStreamed(const v1::InitializeChunk& first, ChunkSource next,
                            v1::InitializeShardResponse* response);
  // The process to which a call that is sent now goes; null: none.
  const SimProcess* Host() const {
    return route_.own != nullptr ? caller_ : network_->ProcessAt(route_.target);
  }
  void NoteEnd(const SimProcess* host, absl::string_view what, bool done) const {
    if (watch_.on_end != nullptr) watch_.on_end(host, what, done);
  }
  absl::Duration ReplicaTimeout() const;

  SimNetwork* const network_;
  SimProcess* const caller_;
  const Route route_;
  const SimControlWatch watch_;
};

// The servers' bulk calls, as a worker makes them. `servers[s]` has shard s.
std::unique_ptr<BulkTransport> MakeSimBulkTransport(SimNetwork* network, SimProcess* caller,
                                                    std::vector<SimTarget> servers);

// The bulk calls that a process makes to what it serves itself. All outlive the result.
std::unique_ptr<BulkHandler> MakeSimOwnShards(SimNetwork* network, SimProcess* process,
                                              BulkHandler* shards);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_NETWORK_H_
