#include "worker/script/script_worker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cluster/logged_name.h"
#include "core/cluster/placement.h"
#include "core/script/script_message.h"
#include "worker/memberships.h"
#include "worker/script/ticket_feed.h"
#include "worker/server_follower.h"

namespace keelson {
namespace {

// How often a wait for the script looks whether the membership has ended.
constexpr absl::Duration kLook = absl::Milliseconds(200);
constexpr size_t kMostTextBytes = 200;

absl::Status NotInProtocol(const ScriptMessage& message) {
  return absl::InvalidArgumentError(absl::StrCat("the script's message: expected one of protocol ",
                                                 kScriptProtocol, " that fits here, found kind ",
                                                 static_cast<uint32_t>(message.kind), " with ",
                                                 message.body.size(), " bytes"));
}

// A line for people, of what may be any bytes.
std::string Printable(absl::string_view text) {
  std::string line(text.substr(0, kMostTextBytes));
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return line;
}

}  // namespace

ScriptWorker::ScriptWorker(ScriptWorkerOptions options, ChiefService* chief,
                           ParameterClientFactory make_client, ScriptSocket* script,
                           const Clock* clock, StopSignal* gone)
    : options_(std::move(options)),
      chief_(chief),
      make_client_(std::move(make_client)),
      script_(script),
      clock_(clock),
      gone_(gone),
      rows_(options_.tables),
      row_answers_(&rows_, script) {}

absl::Status ScriptWorker::Run() {
  absl::Status status = Greet();
  if (status.ok()) {
    status = RunMemberships(
        options_.retry, &progress_, clock_, gone_, [this] { return finished_steps_; },
        [this] { return RunMembership(); });
  }
  if (options_.explain != nullptr) status = options_.explain(status);
  if (status.ok()) status = AwaitLeave();
  if (status.ok()) return status;
  const ScriptMessage failed = ScriptMessageWriter(ScriptMessageKind::kFailed)
                                   .Number(static_cast<uint64_t>(status.code()))
                                   .Text(status.message())
                                   .message();
  script_->Send(failed).IgnoreError();  // It may be gone.
  return status;
}

absl::Status ScriptWorker::Greet() {
  const absl::Duration until = clock_->Monotonic() + options_.greeting_timeout;
  std::optional<ScriptMessage> message;
  while (!message.has_value()) {
    if (clock_->Monotonic() > until) {
      return absl::DeadlineExceededError("the script has not said what it computes with");
    }
    ASSIGN_OR_RETURN(message, script_->Receive(kLook));
    if (gone_->raised()) return absl::CancelledError("by a signal");
  }
  ScriptMessageReader reader(*message);
  const uint64_t protocol = reader.Number();
  if (message->kind != ScriptMessageKind::kHello || !reader.ok()) return NotInProtocol(*message);
  if (protocol != kScriptProtocol) {
    return absl::InvalidArgumentError(absl::StrCat("the script's protocol: expected ",
                                                   kScriptProtocol, ", found ", protocol,
                                                   "; use programs and package of one version"));
  }
  {
    MutexLock lock(&mu_);
    computes_ = Printable(reader.Text());
  }
  ASSIGN_OR_RETURN(memory_, ScriptMemory::Create(options_.variables));
  return absl::OkStatus();
}

std::string ScriptWorker::computes() const {
  MutexLock lock(&mu_);
  return computes_;
}

absl::Status ScriptWorker::RunMembership() {
  const MembershipId membership = options_.new_membership();
  ChiefSession::Options session_options;
  session_options.self = options_.self;
  session_options.membership = membership;
  session_options.config_hash = options_.config_hash;
  session_options.peer = options_.peer;
  session_options.device = computes();
  session_options.step_bound = options_.step_bound;
  session_options.prepare = options_.propose;
  session_options.retry = options_.retry;
  ChiefSession session(session_options, chief_, &progress_, clock_, gone_);
  RETURN_IF_ERROR(session.Join());
  const absl::Status status = RunJoined(&session, membership);
  session.Leave();
  tickets_.Invalidate();
  // The session's error takes precedence: the calls that its end cancels are only consequences.
  const absl::Status over = session.status();
  return status.ok() || over.ok() ? status : over;
}

absl::Status ScriptWorker::RunJoined(ChiefSession* session, const MembershipId& membership) {
  ASSIGN_OR_RETURN(const v1::GetModelResponse located, session->WaitForModel());
  RETURN_IF_ERROR(CheckRecords(located));
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(located.placement()));
  ScriptValues values(memory_->arrays(), options_.variables,
                      rows_.has_tables() || options_.hold_values);
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterClient> client,
                   make_client_({std::move(placement),
                                 {located.ps_addresses().begin(), located.ps_addresses().end()},
                                 membership,
                                 located.member_epoch(),
                                 values.lent(),
                                 session->ended()}));
  const ServerFollower follower(session, client.get(), options_.servers_at);
  if (!told_model_) {
    RETURN_IF_ERROR(client->Pull());
    values.Publish();
    RETURN_IF_ERROR(TellModel());
    told_model_ = true;
  }
  const absl::Status status = Serve(session, client.get(), &values);
  // A server refuses a membership that is over; the chief tells whether another process took the
  // task.
  if (absl::IsAborted(status)) session->Confirm().IgnoreError();
  return status;
}

absl::Status ScriptWorker::CheckRecords(const v1::GetModelResponse& located) const {
  const int64_t expected = located.train_records(), found = options_.records.count;
  if (!options_.compares_records || expected == found) return absl::OkStatus();
  if (expected == 0) {
    return absl::InvalidArgumentError(
        "records: expected a chief that says how many the job has, found one of an older build");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "records: expected ", expected, ", as many as the job has, found the script's ", found));
}

absl::Status ScriptWorker::TellModel() {
  v1::JobStatus job;
  RETURN_IF_ERROR(CallWithRetries(options_.retry, "waiting for the chief", clock_, gone_, [&] {
    return chief_->GetJobStatus(v1::GetJobStatusRequest(), &job);
  }));
  step_ = job.step();
  const ScriptMessage message = ScriptMessageWriter(ScriptMessageKind::kModel)
                                    .Number(kScriptProtocol)
                                    .Number(static_cast<uint64_t>(memory_->bytes()))
                                    .Number(static_cast<uint64_t>(memory_->directory_bytes()))
                                    .Number(options_.records.count)
                                    .Number(job.max_steps())
                                    .Number(job.step())
                                    .message();
  LogInfo("serving a script: ", computes(), ", ", options_.variables.size(), " variables");
  return script_->Send(message, memory_->fd());
}

absl::Status ScriptWorker::Serve(ChiefSession* session, ParameterClient* client,
                                 ScriptValues* values) {
  ScriptSteps steps({session, &progress_, client, values, &rows_, clock_});
  const absl::Cleanup count = [&] { finished_steps_ += steps.finished_steps(); };
  TicketFeed feed(options_.records, session, &tickets_, &step_, script_);
  feed_ = &feed;
  const absl::Cleanup end_wait_for_work = [&] {
    feed_ = nullptr;
    session->ended()->Raise();
  };
  while (!left_ && !(feed.done() && tickets_.empty())) {
    RETURN_IF_ERROR(Receive());
    if (session->ended()->raised()) return absl::CancelledError("by a signal");
    RETURN_IF_ERROR(feed.status());
    RETURN_IF_ERROR(Handle(session, &steps));
  }
  return absl::OkStatus();
}

absl::Status ScriptWorker::AwaitLeave() {
  // The job may end without a message about it.
  RETURN_IF_ERROR(script_->Send(ScriptMessageWriter(ScriptMessageKind::kNoMore)
                                    .Number(static_cast<uint64_t>(step_.load()))
                                    .message()));
  while (!left_) {
    RETURN_IF_ERROR(Receive());
    RETURN_IF_ERROR(Handle(nullptr, nullptr));
  }
  return script_->Send(ScriptMessageWriter(ScriptMessageKind::kBye).message());
}

absl::Status ScriptWorker::Receive() {
  if (received_.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(received_, script_->Receive(kLook));
  return absl::OkStatus();
}

absl::Status ScriptWorker::Handle(ChiefSession* session, ScriptSteps* steps) {
  if (!received_.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(Handle(*received_, session, steps));
  received_.reset();
  return absl::OkStatus();
}

absl::Status ScriptWorker::Handle(const ScriptMessage& message, ChiefSession* session,
                                  ScriptSteps* steps) {
  ScriptMessageReader reader(message);
  switch (message.kind) {
    case ScriptMessageKind::kNext:
      RETURN_IF_ERROR(Want(reader.Number()));
      break;
    case ScriptMessageKind::kBegin:
      RETURN_IF_ERROR(Begin(&reader, steps));
      break;
    case ScriptMessageKind::kOffer:
      RETURN_IF_ERROR(Offer(&reader, steps));
      break;
    case ScriptMessageKind::kStep:
      RETURN_IF_ERROR(Step(&reader, steps));
      break;
    case ScriptMessageKind::kSkip:
      RETURN_IF_ERROR(Skip(&reader, steps));
      break;
    case ScriptMessageKind::kEndTraining:
      EndTraining(session, std::string(reader.Text()));
      break;
    case ScriptMessageKind::kSave:
      RETURN_IF_ERROR(Save(session));
      break;
    case ScriptMessageKind::kLog:
      RETURN_IF_ERROR(Log(&reader));
      break;
    case ScriptMessageKind::kLeave:
      left_ = true;
      break;
    case ScriptMessageKind::kRowSpace:
      RETURN_IF_ERROR(row_answers_.SendMemory(&reader));
      break;
    case ScriptMessageKind::kRows:
      RETURN_IF_ERROR(row_answers_.SendRows(&reader, steps));
      break;
    case ScriptMessageKind::kRowsAhead:
      RETURN_IF_ERROR(rows_.SetAhead(&reader));
      break;
    default:
      return NotInProtocol(message);
  }
  return reader.AtEnd() ? absl::OkStatus() : NotInProtocol(message);
}

absl::Status ScriptWorker::Begin(ScriptMessageReader* reader, ScriptSteps* steps) {
  const uint64_t number = reader->Number();
  ASSIGN_OR_RETURN(const std::optional<Ticket> ticket, tickets_.Oldest(number));
  bool valid = false;
  if (ticket.has_value() && steps != nullptr) {
    ASSIGN_OR_RETURN(valid, steps->Begin(*ticket));
  }
  if (!valid) tickets_.FinishOldest();
  RETURN_IF_ERROR(script_->Send(ScriptMessageWriter(ScriptMessageKind::kReady)
                                    .Number(number)
                                    .Number(uint64_t{valid})
                                    .Number(step_.load())
                                    .message()));
  return row_answers_.SendRowsAhead();
}

absl::Status ScriptWorker::Offer(ScriptMessageReader* reader, ScriptSteps* steps) {
  ASSIGN_OR_RETURN(const std::optional<Ticket> ticket, tickets_.Oldest(reader->Number()));
  std::vector<uint64_t> variables;
  while (reader->ok() && !reader->AtEnd()) variables.push_back(reader->Number());
  if (!ticket.has_value() || steps == nullptr) return absl::OkStatus();
  return steps->Offer(*ticket, variables);
}

absl::Status ScriptWorker::Step(ScriptMessageReader* reader, ScriptSteps* steps) {
  const uint64_t number = reader->Number();
  ScriptStep step;
  step.loss = reader->Real();
  step.compute = absl::Seconds(reader->Real());
  step.input = absl::Seconds(reader->Real());
  const uint64_t tickets = reader->Number();
  step.spaces.resize(std::min<uint64_t>(reader->Number(), kMostMessageBytes));
  for (uint64_t& space : step.spaces) space = reader->Number();
  while (reader->ok() && !reader->AtEnd()) step.absent.push_back(reader->Number());
  ASSIGN_OR_RETURN(const std::optional<Ticket> ticket, tickets_.Oldest(number));
  std::optional<PushResult> pushed;
  if (ticket.has_value() && steps != nullptr) {
    RETURN_IF_ERROR(steps->Clear(step.absent));
    Clip(options_.clip, memory_->arrays().gradients);
    ASSIGN_OR_RETURN(pushed, steps->Step(*ticket, step));
  }
  tickets_.FinishOldest();
  if (!pushed.has_value()) return TellResult(number, /*counts=*/false, 0, tickets);
  step_ = std::max(step_.load(), ticket->step + 1);
  return TellResult(number, /*counts=*/true, pushed->staleness, tickets);
}

absl::Status ScriptWorker::Skip(ScriptMessageReader* reader, ScriptSteps* steps) {
  const uint64_t number = reader->Number();
  const double loss = reader->Real();
  const uint64_t tickets = reader->Number();
  ASSIGN_OR_RETURN(const std::optional<Ticket> ticket, tickets_.Oldest(number));
  bool counts = false;
  if (ticket.has_value() && steps != nullptr) {
    ASSIGN_OR_RETURN(counts, steps->Skip(*ticket, loss));
  }
  if (counts) step_ = std::max(step_.load(), ticket->step + 1);
  tickets_.FinishOldest();
  return TellResult(number, counts, 0, tickets);
}

absl::Status ScriptWorker::Want(uint64_t tickets) {
  if (feed_ != nullptr) return feed_->Give(tickets);
  tickets_.Want(tickets);
  return absl::OkStatus();
}

absl::Status ScriptWorker::TellResult(uint64_t number, bool counts, int64_t staleness,
                                      uint64_t tickets) {
  RETURN_IF_ERROR(Want(tickets));
  RETURN_IF_ERROR(script_->Send(ScriptMessageWriter(ScriptMessageKind::kResult)
                                    .Number(number)
                                    .Number(uint64_t{counts})
                                    .Number(step_.load())
                                    .Number(staleness)
                                    .message()));
  return row_answers_.SendRowsAhead();
}

void ScriptWorker::EndTraining(ChiefSession* session, const std::string& reason) {
  if (session == nullptr) return;  // It has ended.
  const absl::Status status = session->EndTraining(reason);
  if (!status.ok()) LogWarning("the script's wish to end the training: ", status.message());
}

absl::Status ScriptWorker::Log(ScriptMessageReader* reader) {
  const auto step = static_cast<int64_t>(reader->Number());
  const double value = reader->Real();
  const std::string name(reader->Text());
  RETURN_IF_ERROR(CheckLoggedName(name));
  if (progress_.Log(name, step, value) || warned_of_logged_) return absl::OkStatus();
  LogWarning("the script logs values faster than they are told the chief: some are left out");
  warned_of_logged_ = true;
  return absl::OkStatus();
}

absl::Status ScriptWorker::Save(ChiefSession* session) {
  const absl::StatusOr<int64_t> step = session == nullptr ? AwaitLastSnapshot() : SaveNow(session);
  // The next membership answers.
  if (session != nullptr && session->ended()->raised()) return absl::CancelledError("by a signal");
  return script_->Send(ScriptMessageWriter(ScriptMessageKind::kSaved)
                           .Number(static_cast<uint64_t>(step.status().code()))
                           .Number(step.value_or(0))
                           .Text(step.status().message())
                           .message());
}

absl::StatusOr<int64_t> ScriptWorker::SaveNow(ChiefSession* session) {
  while (true) {
    absl::StatusOr<int64_t> step = session->SaveSnapshot();
    if (!absl::IsFailedPrecondition(step.status())) return step;
    // The last step may be done, of which members are not told at once.
    v1::JobStatus job;
    RETURN_IF_ERROR(chief_->GetJobStatus(v1::GetJobStatusRequest(), &job));
    if (job.phase() == v1::FINISHING || job.phase() == v1::EVALUATING || job.phase() == v1::DONE) {
      return AwaitLastSnapshot();
    }
    if (job.phase() != v1::TRAINING || session->ended()->WaitFor(kLook)) return step;
  }
}

absl::StatusOr<int64_t> ScriptWorker::AwaitLastSnapshot() {
  while (true) {
    v1::JobStatus job;
    const absl::Status status = chief_->GetJobStatus(v1::GetJobStatusRequest(), &job);
    if (!status.ok() && !IsTransient(status)) return status;
    if (job.phase() == v1::EVALUATING || job.phase() == v1::DONE) return job.snapshot_step();
    if (job.phase() == v1::FAILED) return absl::UnavailableError(job.error());
    if (!gone_->WaitFor(kLook)) continue;
    const absl::Status gone = absl::CancelledError("by a signal");
    const absl::Status why = options_.explain == nullptr ? gone : options_.explain(gone);
    if (!why.ok()) return why;
    return step_.load();  // The job is done.
  }
}

}  // namespace keelson
