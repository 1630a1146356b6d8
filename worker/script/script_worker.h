// The worker of a model that a script computes: a member of the job on behalf of the script.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_WORKER_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_WORKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/retry.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/task.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "worker/chief_session.h"
#include "worker/progress.h"
#include "worker/script/gradient_clip.h"
#include "worker/script/row_answers.h"
#include "worker/script/script_memory.h"
#include "worker/script/script_rows.h"
#include "worker/script/script_steps.h"
#include "worker/script/script_tickets.h"
#include "worker/script/script_values.h"
#include "worker/script/ticket_feed.h"
#include "worker/worker.h"

namespace keelson {

struct ScriptWorkerOptions {
  Task self;
  std::string peer;
  std::vector<VariableSpec> variables;
  std::vector<TableSpec> tables;  // in the order of the configuration
  ScriptRecords records;
  // The chief counts the records of its own accord, and the script's must be as many.
  bool compares_records = false;
  // What becomes of the gradients in the memory before they are pushed.
  GradientClip clip;
  uint64_t config_hash = 0;
  // Says what the job is, before each registration; null: the chief has it from elsewhere.
  std::function<absl::Status()> propose;
  RetryOptions retry;
  // For how long the script may finish no step before its tickets go to others (RegisterRequest).
  absl::Duration step_bound;
  // Values come into the script's memory with a step's end, so that it may offer gradients.
  bool hold_values = false;
  // How long a new script may take to say HELLO.
  absl::Duration greeting_timeout = absl::Seconds(60);
  // Names the servers of shards that have moved.
  ServerNaming servers_at = ServersAt;
  // Returns a random identity for a membership.
  std::function<MembershipId()> new_membership = RandomMembershipId;
  // What an end of the work by `stop` means, such as that the job is done; null: what it says.
  std::function<absl::Status(const absl::Status&)> explain;
};

// Runs on the thread that calls Run, with a thread for tickets and one for heartbeats: the lease
// does not depend on what the script does.
class ScriptWorker {
 public:
  // All outlive the worker. `gone` is raised with `script`'s end and with the process's stop
  // signal.
  ScriptWorker(ScriptWorkerOptions options, ChiefService* chief, ParameterClientFactory make_client,
               ScriptSocket* script, const Clock* clock, StopSignal* gone);

  // Greets the script, joins the job, serves the script until it leaves or ends. A membership that
  // ends earlier is followed by another one; tickets of the former do not count. An error is told
  // the script and returned: those of Worker::Run that do not concern devices;
  // INVALID_ARGUMENT: a message that the protocol does not have, or another version of it; other
  // records than the job's; RESOURCE_EXHAUSTED: no memory to share; CANCELLED: the script has
  // ended, or `gone` was raised otherwise.
  absl::Status Run();

  const Progress& progress() const { return progress_; }
  // What the script says that it computes with; empty: it has not said it yet. Thread-safe.
  std::string computes() const;

 private:
  absl::Status Greet();
  absl::Status RunMembership();
  absl::Status RunJoined(ChiefSession* session, const MembershipId& membership);
  // INVALID_ARGUMENT: the script has other records than the job.
  absl::Status CheckRecords(const v1::GetModelResponse& located) const;
  absl::Status TellModel();
  // Serves the script until there is no more work, or it leaves.
  absl::Status Serve(ChiefSession* session, ParameterClient* client, ScriptValues* values);
  // Serves a script that may still have tickets, which do not count, until it leaves.
  absl::Status AwaitLeave();
  // Waits for a message for a while, unless there is one.
  absl::Status Receive();
  // Handles the message that was received, if there is one. An error leaves it, to be answered by
  // the next membership. `steps`: null where no membership is left.
  absl::Status Handle(ChiefSession* session, ScriptSteps* steps);
  absl::Status Handle(const ScriptMessage& message, ChiefSession* session, ScriptSteps* steps);
  absl::Status Begin(ScriptMessageReader* reader, ScriptSteps* steps);
  absl::Status Offer(ScriptMessageReader* reader, ScriptSteps* steps);
  absl::Status Step(ScriptMessageReader* reader, ScriptSteps* steps);
  absl::Status Skip(ScriptMessageReader* reader, ScriptSteps* steps);
  void EndTraining(ChiefSession* session, const std::string& reason);
  absl::Status Log(ScriptMessageReader* reader);
  // Has a snapshot written, and tells its step; after the last step, that of the job's last one.
  absl::Status Save(ChiefSession* session);
  absl::StatusOr<int64_t> SaveNow(ChiefSession* session);
  absl::StatusOr<int64_t> AwaitLastSnapshot();
  absl::Status Want(uint64_t tickets);
  // With so many more tickets before it, where they are there.
  absl::Status TellResult(uint64_t number, bool counts, int64_t staleness, uint64_t tickets);

  const ScriptWorkerOptions options_;
  ChiefService* const chief_;
  const ParameterClientFactory make_client_;
  ScriptSocket* const script_;
  const Clock* const clock_;
  StopSignal* const gone_;
  Progress progress_;
  ScriptTickets tickets_;
  // The newest global step that is known.
  std::atomic<int64_t> step_ = 0;
  mutable Mutex mu_;
  std::string computes_ ABSL_GUARDED_BY(mu_);

  // Used by Run's thread alone.
  std::unique_ptr<ScriptMemory> memory_;
  ScriptRows rows_;
  RowAnswers row_answers_;
  bool told_model_ = false;
  std::optional<ScriptMessage> received_;  // not answered yet
  TicketFeed* feed_ = nullptr;             // of the membership, while there is one
  bool left_ = false;
  bool warned_of_logged_ = false;
  int64_t finished_steps_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_WORKER_H_
