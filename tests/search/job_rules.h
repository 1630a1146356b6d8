// What must be true of a simulated job, while it runs and when it has ended.
#ifndef KEELSON_TESTS_SEARCH_JOB_RULES_H_
#define KEELSON_TESTS_SEARCH_JOB_RULES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/wire/byte_rope.h"
#include "evaluator/metrics_log.h"
#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/parameter_service.pb.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/search/copies_rule.h"
#include "tests/search/evaluation_rule.h"
#include "tests/search/fencing_rule.h"
#include "tests/search/fiber_scheduler.h"
#include "tests/search/handing_rule.h"
#include "tests/search/mode_rule.h"
#include "tests/search/network.h"
#include "tests/search/scenario.h"
#include "tests/search/waiting_rule.h"

namespace keelson {

// The rules that world.h names, but for "end" and "progress". Called with what happens in the
// world; tells `violate` which rule is broken and how. Not thread-safe.
class JobRules {
 public:
  // All outlive the rules. `files`: what is on the disk, seen by nobody.
  JobRules(const Scenario& scenario, const v1::TrainConfig& config, FiberScheduler* scheduler,
           MemoryFileSystem* files, std::function<void(const std::string& violation)> violate);

  // ---- What happens.

  // A file in the model directory has changed its name.
  void NoteNameChanged(const std::string& path);
  // A process has replaced a file in the model directory.
  void NoteReplaced(const std::string& path, int process);
  // A process has ended.
  void NoteEnd(int process);
  // A process stands still from now on, or goes on.
  void NotePaused(int process, bool paused);
  // For the network of the job.
  SimWatch Watch();
  // The names in the model directory were made durable.
  void NoteNamesSynced() { durable_ = committed_; }
  void NotePowerCut();
  void NoteProcess() { ++processes_; }
  // A worker computes the gradient of a record.
  void NoteComputed(int64_t record) { ++computed_[static_cast<size_t>(record)]; }
  // A worker has read rows of the table, as RecordWork::read says.
  void CheckRead(const std::vector<float>& rows);
  // A server has ended, and with it the steps since the snapshot of which its shard was restored.
  void NoteLostServer() { lost_server_ = true; }
  // The same of the shard of a host.
  void NoteLostShard() { lost_host_ = true; }
  // A call of the chief about the shard of a host has ended (SimControlWatch).
  void NoteHostCall(size_t shard, const SimProcess& host, absl::string_view what, bool done);
  // A process has ended, or is out of reach for good, with what only it had as the chief or as a
  // host of shards.
  void NoteLost(const SimProcess& process);
  void NoteEvaluation(const EvaluationRecord& record);
  // What is wrong with what a chief is about to send, if the server takes it; empty: nothing.
  std::string CheckInitialize(const SimProcess& chief, size_t shard,
                              const v1::InitializeShardRequest& request);
  // It has taken it.
  void NoteTaken(const std::string& wrong);
  // What a chief or an evaluator is about to send.
  void CheckPersisted(const v1::ChiefHeartbeatRequest& request);
  void CheckAcknowledged(const v1::AcknowledgeEvaluationRequest& request);

  // ---- What is true.

  void CheckSnapshots();
  // The job has ended: of its model, mode and evaluations.
  void CheckEnd();

  // A snapshot was seen.
  bool committed() const { return committed_; }
  ModeRule* modes() { return &modes_; }
  EvaluationRule* evaluations() { return &evaluations_; }

 private:
  // Whether a file that has changed may leave the job without a snapshot.
  bool ConcernsSnapshots(const std::string& path) const;
  // Returns the call's number.
  int64_t NoteExecution(const SimProcess& callee, absl::string_view what, absl::Duration timeout);
  void NoteExecuted(const SimProcess& caller, const SimProcess& callee, absl::string_view what,
                    int64_t begun);
  // The leader calls this process of its node from now on, and no other one.
  void NoteAnnounced(const SimProcess& host, const SimProcess& leader);
  // A leader that finds the job running waits for a while until all hosts have registered with it,
  // and then goes on without those that have not, with what they have.
  bool MayLackHosts(const SimProcess& leader) const;
  // False: the leader calls another one, so that what is applied here is no part of the model.
  bool IsReached(const SimProcess& host) const;
  void NotePushed(int64_t begun, const std::string& request, const ByteRope& answer);
  // What is wrong with the snapshot, which is looked at once; empty: nothing.
  std::string CheckNew(const SnapshotInfo& snapshot, const BundleReader& reader);
  void IdentifySnapshots(const std::vector<SnapshotInfo>& snapshots);
  bool Trained() const;
  // Of a model whose optimizer keeps slots: they, and the values, are those of a job to which
  // nothing has happened.
  std::string CheckSlots(const BundleReader& snapshot) const;
  // Of a model with a table.
  std::string CheckTable(const BundleReader& snapshot) const;
  // Those of the records in all that has counted until the end, by its name.
  absl::StatusOr<std::map<std::string, std::vector<float>>> ReadCounts(
      const BundleReader& snapshot) const;
  // Whether steps of what counts under this name, a variable or part of the table, may be lost.
  bool MayBeLost(absl::string_view counts) const;
  // Whether what counts under this name is in rows that expire.
  bool MayExpire(const std::string& counts) const;
  void CheckCount(const std::string& variable, size_t record, float count);
  void CheckChanged(const std::string& variable, const std::vector<float>& counts);
  void CheckMode(const BundleReader& snapshot);
  void CheckScored(const SnapshotInfo& newest, const BundleReader& snapshot);

  const Scenario& scenario_;
  const v1::TrainConfig& config_;
  FiberScheduler* const scheduler_;
  MemoryFileSystem* const files_;
  const std::function<void(const std::string&)> violate_;
  const std::string model_dir_;
  std::vector<int64_t> computed_;  // by record
  size_t processes_ = 0;
  ModeRule modes_;
  CopiesRule copies_;
  EvaluationRule evaluations_;
  FencingRule fencing_;
  HandingRule handing_;
  WaitingRule waiting_;
  std::map<size_t, int> announced_;   // the process that the leader calls, by node
  std::map<size_t, int> registered_;  // the leader to which a host has announced itself, by node
  std::set<absl::Time> checked_;      // snapshots, by the times of their commits
  std::set<absl::Time> identified_;   // the snapshots that it knows, by the times of their commits
  bool committed_ = false;
  std::string restorable_;  // the one that could be opened at the last look
  bool durable_ = false;    // and is there after a power cut
  bool lost_server_ = false;
  bool lost_host_ = false;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_JOB_RULES_H_
