#include "tests/search/job_rules.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/cluster/consistency.h"
#include "core/wire/bulk_messages.h"
#include "tests/search/job_state_rule.h"
#include "tests/search/record_model.h"
#include "tests/search/record_rows.h"
#include "tests/search/snapshot_rule.h"

namespace keelson {
namespace {

// As ServerGroup::Options has it.
constexpr absl::Duration kRegistrationPatience = absl::Seconds(5);

// The chief's process may also host a shard.
bool IsChiefCall(absl::string_view what) {
  constexpr absl::string_view kCalls[] = {
      "Register",   "GetModel",     "Heartbeat",   "AcquireWork", "Admit",
      "SetMode",    "SaveSnapshot", "Leave",       "EndTraining", "AcknowledgeEvaluation",
      "ProposeJob", "GetJobStatus", "AnnounceHost"};
  return std::find(std::begin(kCalls), std::end(kCalls), what) != std::end(kCalls);
}

}  // namespace

JobRules::JobRules(const Scenario& scenario, const v1::TrainConfig& config,
                   FiberScheduler* scheduler, MemoryFileSystem* files,
                   std::function<void(const std::string& violation)> violate)
    : scenario_(scenario),
      config_(config),
      scheduler_(scheduler),
      files_(files),
      violate_(std::move(violate)),
      model_dir_(config.checkpoint().model_dir()),
      computed_(static_cast<size_t>(scenario.job.records)),
      modes_(*ConsistencyMode::FromProto(config.consistency().mode())),
      copies_(scenario.shards()) {}

// ---- What happens.

void JobRules::NoteNameChanged(const std::string& path) {
  if (ConcernsSnapshots(path)) CheckSnapshots();
}

void JobRules::NoteReplaced(const std::string& path, int process) {
  if (path == JoinPath(model_dir_, "JOB")) fencing_.NoteOwner(process);
  if (path != JoinPath(model_dir_, "checkpoint")) return;
  const std::string wrong = fencing_.CheckCommit(process);
  if (!wrong.empty()) violate_(absl::StrCat("fencing: ", wrong));
}

void JobRules::NoteEnd(int process) {
  modes_.NoteEnd(process);
  fencing_.NoteEnd(process);
  waiting_.NoteEnd(process);
}

void JobRules::NotePaused(int process, bool paused) {
  waiting_.NotePaused(process, paused, scheduler_->Monotonic());
}

SimWatch JobRules::Watch() {
  SimWatch watch;
  watch.on_execute = [this](const SimProcess& callee, absl::string_view what,
                            absl::Duration timeout) {
    return NoteExecution(callee, what, timeout);
  };
  watch.on_done = [this](int64_t begun) { waiting_.NoteDone(begun); };
  watch.on_executed = [this](const SimProcess& caller, const SimProcess& callee,
                             absl::string_view what,
                             int64_t begun) { NoteExecuted(caller, callee, what, begun); };
  watch.on_answer = [this](const SimProcess& caller, absl::string_view what) {
    if (what == "WriteSnapshot" || what == "StreamSnapshot") fencing_.NoteWritten(caller.group);
  };
  watch.on_granted = [this](const SimProcess& chief, uint64_t incarnation,
                            const v1::AcquireWorkResponse& work) {
    handing_.NoteGranted(chief.group, incarnation, work);
  };
  watch.on_bulk = [this] { return handing_.now(); };
  watch.on_pushed = [this](const SimProcess& host, int64_t begun, const std::string& request,
                           const ByteRope& answer) {
    if (IsReached(host)) NotePushed(begun, request, answer);
  };
  return watch;
}

void JobRules::NoteHostCall(size_t shard, const SimProcess& host, absl::string_view what,
                            bool done) {
  copies_.NoteCall(shard, host.group, host.node == scenario_.HomeOf(shard), what, done);
}

void JobRules::NoteLost(const SimProcess& process) {
  if (!scenario_.collective && !scenario_.hybrid) return;
  if (copies_.NoteLost(process.group, process.node == 0)) lost_host_ = true;
  // Replicas get updates that come with rounds.
  if (modes_.changes() && scenario_.HostsShard(process.node)) lost_host_ = true;
}

bool JobRules::IsReached(const SimProcess& host) const {
  const auto newest = announced_.find(host.node);
  return newest == announced_.end() || newest->second == host.group;
}

int64_t JobRules::NoteExecution(const SimProcess& callee, absl::string_view what,
                                absl::Duration timeout) {
  const absl::Duration now = scheduler_->Monotonic();
  const std::string wrong = waiting_.Check(now);
  if (!wrong.empty()) violate_(absl::StrCat("waiting: ", wrong));
  const int64_t call = fencing_.Now();
  // Servers may have to wait for files, and for the calls of another chief; and on a busy host all
  // wait for a processor.
  if (callee.node == 0 && scenario_.stall == 0 && IsChiefCall(what))
    waiting_.NoteBegin(call, callee.group, what, timeout, now);
  return call;
}

void JobRules::NoteAnnounced(const SimProcess& host, const SimProcess& leader) {
  registered_[host.node] = leader.group;
  const auto [newest, first] = announced_.try_emplace(host.node, host.group);
  if (first || newest->second == host.group) return;
  // One that was frozen before it had registered takes the place of its successor.
  if (copies_.NoteLost(newest->second, false) || modes_.changes()) lost_host_ = true;
  copies_.NoteReturned(host.group);
  newest->second = host.group;
}

void JobRules::NoteExecuted(const SimProcess& caller, const SimProcess& callee,
                            absl::string_view what, int64_t begun) {
  if (what == "AnnounceHost") return NoteAnnounced(caller, callee);
  if (what != "ChiefHeartbeat" || caller.node != 0) return;
  modes_.NoteCalled(callee.group);
  const std::string wrong = fencing_.NoteObeyed(callee.group, caller.group, begun);
  if (!wrong.empty()) violate_(absl::StrCat("fencing: ", wrong));
}

void JobRules::NotePushed(int64_t begun, const std::string& request, const ByteRope& answer) {
  if (scenario_.job.mode == RecordMode::kSynchronous || modes_.changes()) return;
  BulkRequest push;
  BulkResponse done;
  ByteRope bytes;
  bytes.AppendCopy(request);
  ByteCursor request_cursor(bytes);
  ByteCursor answer_cursor(answer);
  if (!DecodeBulkRequest(&request_cursor, &push).ok()) return;
  if (!DecodeBulkResponse(&answer_cursor, &done).ok()) return;
  const bool may_be_late = scenario_.stall > 0;
  const std::string wrong = handing_.NotePushed(push, done, may_be_late ? begun : handing_.now());
  if (!wrong.empty()) violate_(absl::StrCat("handing: ", wrong));
}

std::string JobRules::CheckNew(const SnapshotInfo& snapshot, const BundleReader& reader) {
  if (!checked_.insert(snapshot.time).second) return "";
  const std::string wrong = CheckSnapshot(reader, scenario_.shards(), scenario_.trainers());
  return !wrong.empty() || !scenario_.job.table ? wrong : CheckTable(reader);
}

std::string JobRules::CheckTable(const BundleReader& snapshot) const {
  const int64_t records = scenario_.job.records;
  const auto rate = static_cast<double>(RecordRate(scenario_.job));
  const auto counts = RecordRows(records, scenario_.job.expire_after).ReadCounts(snapshot, rate);
  if (!counts.ok()) return counts.status().ToString();
  // A common row has lost what it counted before it expired.
  if (scenario_.job.expire_after > 0) return "";
  return CheckShardSums(
      snapshot, *counts, records, scenario_.shards(),
      [this](const std::string& variable, double sum) {
        return static_cast<double>(CountOf(scenario_.job, variable, static_cast<float>(sum)));
      });
}

void JobRules::CheckRead(const std::vector<float>& rows) {
  // A round of two in a job that began without rounds adds a half for each.
  const std::string wrong =
      CheckReadRows(rows, modes_.changes() ? 0.5f : 1.0f, scenario_.job.expire_after > 0);
  if (!wrong.empty()) violate_(absl::StrCat("read: ", wrong));
}

bool JobRules::Trained() const {
  return std::any_of(computed_.begin(), computed_.end(), [](int64_t times) { return times > 0; });
}

void JobRules::NotePowerCut() {
  // The first commit may have been under way. Nobody has trained from it then.
  if (!durable_ && !Trained()) committed_ = false;
  CheckSnapshots();
}

void JobRules::NoteEvaluation(const EvaluationRecord& record) {
  const std::string wrong = evaluations_.Add(record);
  if (!wrong.empty()) violate_(absl::StrCat("score: ", wrong));
}

bool JobRules::MayLackHosts(const SimProcess& leader) const {
  const bool waits = scheduler_->Monotonic() - leader.started < kRegistrationPatience;
  if (!scenario_.registers || waits) return false;
  for (size_t node = 1; node < scenario_.shards(); ++node) {
    const auto with = registered_.find(node);
    if (with == registered_.end() || with->second != leader.group) return true;
  }
  return false;
}

std::string JobRules::CheckInitialize(const SimProcess& chief, size_t shard,
                                      const v1::InitializeShardRequest& request) {
  if (committed_ && !request.has_restore_step()) {
    return "initial: a shard is given initial values although a snapshot was committed";
  }
  if (!scenario_.IsHostedShard(shard) || !Trained()) return "";
  if (MayLackHosts(chief)) lost_host_ = true;
  if (lost_host_) return "";
  return absl::StrCat("copies: shard ", shard,
                      " is made anew although no process has taken its only copy away");
}

void JobRules::NoteTaken(const std::string& wrong) {
  if (!wrong.empty()) violate_(wrong);
}

void JobRules::CheckAcknowledged(const v1::AcknowledgeEvaluationRequest& request) {
  const std::string wrong = evaluations_.CheckAcknowledged(request.step(), request.snapshot_id());
  if (!wrong.empty()) violate_(absl::StrCat("score: ", wrong));
}

void JobRules::IdentifySnapshots(const std::vector<SnapshotInfo>& snapshots) {
  for (const SnapshotInfo& snapshot : snapshots) {
    if (identified_.contains(snapshot.time)) continue;
    const auto reader = BundleReader::Open(snapshot.prefix, files_);
    if (!reader.ok()) continue;
    const auto id = ReadSnapshotId(**reader);
    const auto loss = LossOf(**reader, scenario_.job);
    if (!id.ok() || !loss.ok()) continue;
    evaluations_.NoteSnapshot(*id, snapshot.step, *loss);
    identified_.insert(snapshot.time);
  }
}

bool JobRules::ConcernsSnapshots(const std::string& path) const {
  return path == JoinPath(model_dir_, "checkpoint") ||
         (!restorable_.empty() && absl::StartsWith(path, absl::StrCat(restorable_, ".")) &&
          !absl::StrContains(path, kLeaseInfix));
}

void JobRules::CheckSnapshots() {
  const FiberScheduler::Atomic atomic(scheduler_);
  const CheckpointDirectory directory(files_, model_dir_, Clock::Real());
  const auto snapshots = directory.List();
  if (!snapshots.ok()) return violate_(absl::StrCat("snapshot: ", snapshots.status().ToString()));
  if (snapshots->empty()) {
    if (committed_) violate_("snapshot: none is there any more");
    return;
  }
  committed_ = true;
  if (scenario_.evaluators > 0) IdentifySnapshots(*snapshots);
  for (size_t i = snapshots->size(); i-- > 0;) {
    const SnapshotInfo& snapshot = (*snapshots)[i];
    const auto reader = BundleReader::Open(snapshot.prefix, files_);
    if (!reader.ok()) continue;
    restorable_ = snapshot.prefix;
    const std::string wrong = CheckNew(snapshot, **reader);
    if (!wrong.empty()) violate_(absl::StrCat("snapshot: ", wrong));
    return;
  }
  violate_(absl::StrCat("snapshot: none of ", snapshots->size(), " can be opened"));
}

void JobRules::CheckPersisted(const v1::ChiefHeartbeatRequest& request) {
  const size_t tasks = scenario_.trainers() + scenario_.evaluators;
  const size_t lost = processes_ + scenario_.faults.size();
  if (static_cast<size_t>(request.members().members_size()) > tasks) {
    violate_(
        absl::StrCat("state: ", request.members().members_size(), " members of ", tasks, " tasks"));
  }
  if (request.job_state().empty()) return;
  v1::PersistedJobState state;
  const bool parsed = state.ParseFromString(request.job_state());
  const std::string wrong = parsed ? CheckJobState(state, tasks, lost) : "it cannot be parsed";
  if (!wrong.empty()) violate_(absl::StrCat("state: ", wrong));
}

absl::StatusOr<std::map<std::string, std::vector<float>>> JobRules::ReadCounts(
    const BundleReader& snapshot) const {
  std::map<std::string, std::vector<float>> counts;
  for (const std::string& variable : RecordVariables()) {
    std::vector<float>& of_variable = counts[variable];
    of_variable.resize(computed_.size());
    RETURN_IF_ERROR(snapshot.ReadElements(variable, 0, absl::MakeSpan(of_variable)));
    for (float& count : of_variable) count = CountOf(scenario_.job, variable, count);
  }
  if (!scenario_.job.table) return counts;
  ASSIGN_OR_RETURN(std::vector<RowCounts> rows,
                   RecordRows(scenario_.job.records, scenario_.job.expire_after)
                       .ReadCounts(snapshot, static_cast<double>(RecordRate(scenario_.job))));
  for (size_t p = 0; p < rows.size(); ++p) {
    counts[absl::StrCat(kRecordTable, ", partition ", kCountedPartitions[p])] =
        std::move(rows[p].own);
  }
  return counts;
}

std::string JobRules::CheckSlots(const BundleReader& snapshot) const {
  for (const std::string& variable : RecordVariables()) {
    for (const auto& [name, expected] : UndisturbedState(scenario_.job, variable)) {
      std::vector<float> found(computed_.size());
      const absl::Status read = snapshot.ReadElements(name, 0, absl::MakeSpan(found));
      if (!read.ok()) return read.ToString();
      for (size_t record = 0; record < found.size(); ++record) {
        if (found[record] == expected) continue;
        return absl::StrCat(name, " has ", found[record], " for record ", record, ", expected ",
                            expected, "; it was computed ", computed_[record], " times");
      }
    }
  }
  return "";
}

bool JobRules::MayBeLost(absl::string_view counts) const {
  if (!scenario_.hybrid) return lost_server_ || lost_host_;
  return absl::StartsWith(counts, kRecordTable) ? lost_server_ : lost_host_;
}

bool JobRules::MayExpire(const std::string& counts) const {
  return scenario_.job.expire_after > 0 && absl::StartsWith(counts, kRecordTable);
}

void JobRules::CheckCount(const std::string& variable, size_t record, float count) {
  const bool once = scenario_.job.mode == RecordMode::kSynchronous;
  const float least = MayBeLost(variable) || MayExpire(variable) ? 0 : 1;
  const float most = once ? 1 : static_cast<float>(computed_[record]);
  if (count >= least && count <= most) return;
  violate_(absl::StrCat("counts: record ", record, " counts ", count, " times in ", variable,
                        ", expected ", least, " to ", most, "; it was computed ", computed_[record],
                        " times"));
}

void JobRules::CheckEnd() {
  const FiberScheduler::Atomic atomic(scheduler_);
  const CheckpointDirectory directory(files_, model_dir_, Clock::Real());
  const auto snapshots = directory.List();
  if (!snapshots.ok() || snapshots->empty()) return violate_("snapshot: the job left none");
  const SnapshotInfo& newest = snapshots->back();
  if (newest.step != config_.train().max_steps()) {
    return violate_(absl::StrCat("counts: the job ended with a snapshot of step ", newest.step));
  }
  const auto reader = BundleReader::Open(newest.prefix, files_);
  if (!reader.ok()) return violate_(absl::StrCat("snapshot: ", reader.status().ToString()));
  const auto all_counts = ReadCounts(**reader);
  if (!all_counts.ok()) return violate_(absl::StrCat("snapshot: ", all_counts.status().ToString()));
  if (scenario_.job.slots && !lost_server_ && !lost_host_) {
    const std::string wrong = CheckSlots(**reader);
    if (!wrong.empty()) violate_(absl::StrCat("counts: ", wrong));
  }
  for (const auto& [variable, counts] : *all_counts) {
    if (modes_.changes()) {
      CheckChanged(variable, counts);
      continue;
    }
    for (size_t record = 0; record < counts.size(); ++record) {
      CheckCount(variable, record, counts[record]);
    }
  }
  CheckMode(**reader);
  CheckScored(newest, **reader);
}

void JobRules::CheckScored(const SnapshotInfo& newest, const BundleReader& snapshot) {
  if (scenario_.evaluators == 0) return;
  const auto id = ReadSnapshotId(snapshot);
  const auto file = ReadFile(JoinPath(model_dir_, "eval/metrics.jsonl"), files_);
  if (!id.ok() || !file.ok()) {
    return violate_(absl::StrCat("score: ", id.status().ToString(), file.status().ToString()));
  }
  const std::string wrong = EvaluationRule::CheckEnd(*file, newest.step, *id);
  if (!wrong.empty()) violate_(absl::StrCat("score: ", wrong));
}

// Each step adds the rate in all, be it to one record's element or in parts to several.
void JobRules::CheckChanged(const std::string& variable, const std::vector<float>& counts) {
  const auto rate = static_cast<float>(config_.learning_rate().base());
  const float expected = rate * static_cast<float>(config_.train().max_steps());
  const float sum = std::accumulate(counts.begin(), counts.end(), 0.0f);
  const bool lacks = !MayBeLost(variable) && !MayExpire(variable) && sum < expected;
  if (lacks || (modes_.synchronous() && sum > expected)) {
    violate_(absl::StrCat("counts: all records together count ", sum, " in ", variable,
                          ", expected ", expected));
  }
  for (size_t record = 0; record < counts.size(); ++record) {
    const float most = rate * static_cast<float>(computed_[record]);
    if (counts[record] <= most) continue;
    violate_(absl::StrCat("counts: record ", record, " counts ", counts[record], " times in ",
                          variable, ", expected at most ", most));
  }
}

void JobRules::CheckMode(const BundleReader& snapshot) {
  const auto state = ReadJobState(snapshot);
  if (!state.ok() || !state->has_value()) {
    return violate_(absl::StrCat("snapshot: no job state: ", state.status().ToString()));
  }
  const auto mode = ConsistencyMode::FromProto((*state)->has_mode() ? (*state)->mode()
                                                                    : config_.consistency().mode());
  const std::string wrong = modes_.Check(*mode);
  if (!wrong.empty()) violate_(absl::StrCat("mode: ", wrong));
}

}  // namespace keelson
