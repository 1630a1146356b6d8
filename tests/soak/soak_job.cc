#include "tests/soak/soak_job.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/client/services/grpc_chief_service.h"
#include "gtest/gtest.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

// Each way from a worker to a server, and to a host of a shard where steps are synchronous.
constexpr absl::Duration kPaceDelay = absl::Milliseconds(10);
constexpr absl::Duration kRoundPaceDelay = absl::Milliseconds(20);
// What a process still does at its start after it has said that it starts.
constexpr absl::Duration kStartMargin = absl::Seconds(3);
constexpr absl::Duration kCallTimeout = absl::Seconds(2);
// How long keelson_ctl may take with that timeout.
constexpr absl::Duration kProgramLimit = absl::Seconds(20);
constexpr size_t kPrintedLogBytes = 3000;

// Of "shard-2 of worker-1" and "ps-0".
std::optional<int> ShardNamedIn(absl::string_view line) {
  for (const absl::string_view prefix : {"shard-", "ps-"}) {
    const size_t at = line.find(prefix);
    if (at == absl::string_view::npos) continue;
    const absl::string_view rest = line.substr(at + prefix.size());
    int shard = 0;
    if (absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &shard)) {
      return shard;
    }
  }
  return std::nullopt;
}

Job::Layout LayoutOf(SoakCluster cluster) {
  constexpr int kEvaluators = 2;
  switch (cluster) {
    case SoakCluster::kServers:
      return {.ps = 2, .workers = kSoakTrainers, .evaluators = kEvaluators};
    case SoakCluster::kHosts:
      return {.ps = 0, .workers = kSoakTrainers - 1, .evaluators = kEvaluators};
    case SoakCluster::kBoth:
      return {.ps = 1, .workers = kSoakTrainers, .evaluators = kEvaluators};
  }
  return {};
}

}  // namespace

std::string NameOf(SoakCluster cluster) {
  switch (cluster) {
    case SoakCluster::kServers:
      return "parameter servers";
    case SoakCluster::kHosts:
      return "no parameter servers";
    case SoakCluster::kBoth:
      return "a parameter server, and shards on workers";
  }
  return "";
}

SoakJob::SoakJob(SoakCluster cluster, const std::string& config, uint64_t seed)
    : cluster_(cluster), start_(absl::Now()), random_(seed), job_(LayoutOf(cluster), config) {
  job_.AddFlag(Role::kChief, "--lease=3");
  job_.AddFlag(Role::kChief, "--owner_lease=2");
  job_.RunBehind(BehindFaultyStorage(model_dir(), HangingMarker(), ErringMarker()));
  for (const Role role : {Role::kPs, Role::kChief, Role::kWorker, Role::kEvaluator}) {
    absl::c_copy(job_.TasksOf(role), std::back_inserter(tasks_));
  }
  AddLinks();
}

SoakJob::~SoakJob() { SetStorage(Storage::kGood); }

bool SoakJob::Serves(const Task& task) const {
  switch (task.role) {
    case Role::kPs:
      return true;
    case Role::kWorker:
      return cluster_ != SoakCluster::kServers;
    case Role::kChief:
      return cluster_ == SoakCluster::kHosts;
    case Role::kEvaluator:
      return false;
  }
  return false;
}

void SoakJob::AddLinks() {
  for (const Task& from : tasks_) {
    if (from.role == Role::kPs) continue;
    if (from.role != Role::kChief) AddLink(from, kChiefTask);
    if (from.role == Role::kEvaluator) continue;
    for (const Task& to : tasks_) {
      if (Serves(to) && to != from && to != kChiefTask) AddLink(from, to);
    }
  }
}

void SoakJob::AddLink(const Task& from, const Task& to) {
  Link link = {&job_.Link(from, to), absl::StrCat(from.ToString(), " to ", to.ToString()), {}};
  link.of_worker_to_chief = from.role == Role::kWorker && to.role == Role::kChief;
  const bool trains = from.role == Role::kWorker || Serves(from);
  if (trains && Serves(to)) {
    link.healthy.delay = cluster_ == SoakCluster::kServers ? kPaceDelay : kRoundPaceDelay;
  }
  link.proxy->Set(link.healthy);
  links_.push_back(link);
}

void SoakJob::Note(const std::string& event) {
  events_.push_back(
      absl::StrFormat("%7.2f s  %s", absl::ToDoubleSeconds(absl::Now() - start_), event));
}

void SoakJob::PrintLog() const {
  for (const std::string& line : events_) std::printf("%s\n", line.c_str());
  for (const Task& task : tasks_) {
    std::printf("---- %s\n%s\n", task.ToString().c_str(), EndOfLog(task).c_str());
  }
}

std::string SoakJob::EndOfLog(const Task& task) const {
  const std::string log = job_.Log(task);
  return log.substr(log.size() - std::min(log.size(), kPrintedLogBytes));
}

// To a program that starts, a model directory that is none is bad configuration.
bool SoakJob::CanBreak(const Task& task) const {
  return !down_.contains(task) && !frozen_.contains(task) && !lost();
}

bool SoakJob::HasStarted(const Task& task) const {
  if (down_.contains(task) || watch_.Age(task).value_or(absl::ZeroDuration()) < kStartMargin) {
    return false;
  }
  const auto says = [log = job_.Log(task)](absl::string_view text) {
    return absl::StrContains(log, text);
  };
  switch (task.role) {
    case Role::kChief:
      return says(" training goes on: ") || says(" continuing from ") ||
             says(" training from the start");
    case Role::kPs:
      return says(" listening on port ");
    case Role::kWorker:
      return says(" training on ");
    case Role::kEvaluator:
      return says(" evaluating ");
  }
  return false;
}

bool SoakJob::AllHaveStarted() const {
  return absl::c_all_of(tasks_, [this](const Task& task) { return HasStarted(task); });
}

int SoakJob::restarts(const Task& task) const {
  const auto found = restarts_.find(task);
  return found == restarts_.end() ? 0 : found->second;
}

void SoakJob::StartAgain(const Task& task) {
  if (down_.erase(task) == 0) return;
  Note(absl::StrCat("start of ", task.ToString()));
  watch_.Forget(task);
  ++restarts_[task];
  // A chief on a cluster of servers alone may have been abandoned.
  if (task == kChiefTask && cluster_ != SoakCluster::kServers) {
    absl::StrAppend(&chief_logs_, job_.Log(kChiefTask));
  }
  job_.Start(task);
}

std::unique_ptr<Process> SoakJob::Abandon(const Task& task) {
  down_.insert(task);
  return job_.Abandon(task);
}

void SoakJob::Freeze(const Task& task) {
  job_.process(task).Signal(SIGSTOP);
  frozen_.insert(task);
}

void SoakJob::Thaw(const Task& task) {
  if (frozen_.erase(task) == 0) return;
  Note(absl::StrCat("end of the freeze of ", task.ToString()));
  job_.process(task).Signal(SIGCONT);
}

std::vector<Task> SoakJob::WatchProcesses(bool may_be_done) {
  std::vector<Task> ended;
  for (const Task& task : tasks_) {
    if (down_.contains(task)) continue;
    Process& process = job_.process(task);
    const std::optional<int> code = process.Poll();
    if (!code.has_value()) {
      watch_.Look(task, process.pid());
      continue;
    }
    if (may_be_done && *code == kExitDone) continue;
    Note(absl::StrCat(task.ToString(), " ended with ", *code));
    EXPECT_EQ(*code, kExitTransient) << task.ToString() << "\n" << EndOfLog(task);
    down_.insert(task);
    CountLoss(task);
    ended.push_back(task);
  }
  return ended;
}

void SoakJob::ExchangeModelDirectory() {
  EXPECT_EQ(renameat2(AT_FDCWD, Away().c_str(), AT_FDCWD, model_dir().c_str(), RENAME_EXCHANGE), 0);
}

void SoakJob::SetStorage(Storage storage) {
  if (storage == storage_) return;
  switch (storage_) {
    case Storage::kGood:
      break;
    case Storage::kHangs:
      EXPECT_EQ(RemoveFile(HangingMarker()), absl::OkStatus());
      break;
    case Storage::kErrs:
      EXPECT_EQ(RemoveFile(ErringMarker()), absl::OkStatus());
      break;
    case Storage::kLost:
      ExchangeModelDirectory();
      EXPECT_EQ(RemoveFile(Away()), absl::OkStatus());
  }
  storage_ = storage;
  switch (storage) {
    case Storage::kGood:
      break;
    case Storage::kHangs:
      EXPECT_EQ(WriteFileAtomically(HangingMarker(), ""), absl::OkStatus());
      break;
    case Storage::kErrs:
      EXPECT_EQ(WriteFileAtomically(ErringMarker(), ""), absl::OkStatus());
      break;
    case Storage::kLost:
      EXPECT_EQ(WriteFileAtomically(Away(), "not a directory"), absl::OkStatus());
      ExchangeModelDirectory();
  }
}

bool SoakJob::SetMode(const ConsistencyMode& mode) {
  return Draw(0, 1) == 0 ? SetModeByCall(mode) : SetModeByProgram(mode);
}

bool SoakJob::SetModeByCall(const ConsistencyMode& mode) {
  v1::SetModeRequest request;
  *request.mutable_mode() = mode.ToProto();
  v1::SetModeResponse response;
  const absl::Status status = ConnectChiefService(job_.Address(kChiefTask),
                                                  job_.MemberCredentials("operator"), kCallTimeout)
                                  ->SetMode(request, &response);
  Note(absl::StrCat("mode ", mode.ToString(), ": ", status.ToString()));
  return status.ok();
}

bool SoakJob::SetModeByProgram(const ConsistencyMode& mode) {
  const std::vector<std::string> flags = {
      absl::StrCat("--chief=", job_.Address(kChiefTask)),
      absl::StrCat("--job_token_file=", job_.TokenPath()),
      absl::StrCat("--timeout=", absl::ToDoubleSeconds(kCallTimeout)), "mode", mode.ToString()};
  const ProgramRun run = RunProgram("keelson_ctl", flags, {}, kProgramLimit);
  const bool refused =
      run.exit_code == kExitPermanent && absl::StrContains(run.log, "the job does not train");
  EXPECT_TRUE(run.exit_code == kExitDone || run.exit_code == kExitTransient || refused)
      << "keelson_ctl: " << run.exit_code << ", " << run.log;
  Note(absl::StrCat("keelson_ctl mode ", mode.ToString(), ": ", run.exit_code, ", ",
                    absl::StripAsciiWhitespace(run.log)));
  return run.exit_code == kExitDone;
}

void SoakJob::CountLoss(const Task& task) {
  if (task.role == Role::kWorker) ++worker_losses_;
  if (task.role == Role::kPs) ++server_losses_[task.index];
}

// "shard-2 of worker-1 has been restarted and restored from ...: lost steps 100 to 130 of its
// shard", "step 131 is lost at ps-0: ...".
std::set<int> SoakJob::ShardsSaidToHaveLost() const {
  std::set<int> shards;
  const std::string log = absl::StrCat(chief_logs_, job_.Log(kChiefTask));
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const bool restored = absl::StrContains(line, " has been restarted and restored from ") &&
                          !absl::StrContains(line, ": lost no step");
    if (!restored && !absl::StrContains(line, " is lost at ")) continue;
    const std::optional<int> shard = ShardNamedIn(line);
    EXPECT_TRUE(shard.has_value()) << line;
    shards.insert(shard.value_or(-1));
  }
  return shards;
}

bool SoakJob::HasLostSteps(int server) const {
  const auto found = server_losses_.find(server);
  return found != server_losses_.end() && found->second > 0;
}

}  // namespace keelson
