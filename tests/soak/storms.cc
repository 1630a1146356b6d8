#include "tests/soak/storms.h"

#include <signal.h>

#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/checkpoint/job_file.h"
#include "core/cluster/consistency.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using Flow = LinkConditions::Flow;
using Storage = SoakJob::Storage;

constexpr absl::Duration kSignalLimit = absl::Seconds(30);
// A server that was asked to stop has this long, since it may wait for a chief that is away.
constexpr absl::Duration kDrainLimit = absl::Seconds(15);

// ---- Processes that end.

// The task's newest process works, or has found the job done, or another storm has it.
std::function<bool()> IsBack(SoakJob* job, const Task& task) {
  return [job, task, before = job->restarts(task)] {
    const int restarts = job->restarts(task);
    return restarts > before + 1 ||
           (restarts == before + 1 &&
            (job->HasStarted(task) || job->job().process(task).Poll().has_value()));
  };
}

BegunStorm Kill(SoakJob* job, const Task& task, absl::Duration longest) {
  BegunStorm storm = {absl::StrCat("kill -9 of ", task.ToString()), longest, nullptr,
                      [job, task] { job->StartAgain(task); }, IsBack(job, task)};
  job->job().process(task).Signal(SIGKILL);
  // It may just have asked to be started again, or have found the job done.
  EXPECT_THAT(job->job().process(task).Wait(kSignalLimit),
              AnyOf(Eq(128 + SIGKILL), Eq(kExitTransient), Eq(kExitDone)))
      << task.ToString();
  job->TakeDown(task);
  job->CountLoss(task);
  return storm;
}

std::vector<BegunStorm> KillOne(SoakJob* job) {
  const Task task = job->Pick(job->tasks());
  if (!job->CanBreak(task)) return {};
  return {Kill(job, task, job->Draw(0, 1) * absl::Seconds(3))};
}

std::vector<BegunStorm> KillAll(SoakJob* job) {
  if (!job->NothingIsBroken()) return {};
  std::vector<BegunStorm> storms;
  for (const Task& task : job->tasks()) job->job().process(task).Signal(SIGKILL);
  for (const Task& task : job->tasks()) storms.push_back(Kill(job, task, absl::Seconds(1)));
  return storms;
}

// A chief that was asked to stop may wait for a frozen server, until it is killed.
std::vector<BegunStorm> StopOne(SoakJob* job) {
  const Task task = job->Pick(job->tasks());
  if (task.role == Role::kPs || !job->CanBreak(task)) return {};
  const auto end = [job, task] {
    const std::optional<int> code = job->job().process(task).Poll();
    EXPECT_EQ(code.value_or(kExitStopped), kExitStopped) << task.ToString();
    job->StartAgain(task);
  };
  BegunStorm storm = {absl::StrCat("SIGTERM to ", task.ToString()), absl::Seconds(5), nullptr, end,
                      IsBack(job, task)};
  job->job().process(task).Signal(SIGTERM);
  job->TakeDown(task);
  job->CountLoss(task);
  return {storm};
}

// As when its node is drained: it is started again when it has ended. The chief says what the
// server has lost; where it says nothing lost, that is held against the counts at the end.
std::vector<BegunStorm> DrainServer(SoakJob* job) {
  const Task server = job->Pick(job->job().TasksOf(Role::kPs));
  if (!job->CanBreak(server) || !job->HasStarted(server)) return {};
  const absl::Time limit = absl::Now() + kDrainLimit;
  const pid_t chief = job->job().process(kChiefTask).pid();
  const size_t said = job->job().Log(kChiefTask).size();
  Process& process = job->job().process(server);
  BegunStorm storm;
  storm.what = absl::StrCat("drain of ", server.ToString());
  storm.over = [&process, limit] { return process.Poll().has_value() || absl::Now() > limit; };
  storm.end = [job, server, &process] {
    const std::optional<int> code = process.Poll();
    EXPECT_EQ(code.value_or(kExitStopped), kExitStopped) << server.ToString();
    if (!code.has_value()) job->Note(absl::StrCat(server.ToString(), " is not drained in time"));
    job->StartAgain(server);
  };
  storm.expected = [job, server, chief, said, is_back = IsBack(job, server)] {
    if (!is_back()) return false;
    if (job->job().process(kChiefTask).pid() != chief) return true;
    const std::string log = job->job().Log(kChiefTask).substr(said);
    const size_t at = log.find(absl::StrCat(server.ToString(), " has been restarted"));
    const bool saved = absl::StrContains(log.substr(0, at), "asked to stop: ");
    if (at == std::string::npos || !saved) return true;
    const std::string line = log.substr(at, log.find('\n', at) - at);
    job->Note(line);
    if (absl::StrContains(line, ": lost no step")) job->TakeBackLoss(server);
    return true;
  };
  process.Signal(SIGTERM);
  job->TakeDown(server);
  job->CountLoss(server);
  return {storm};
}

// ---- Processes that stand still.

std::vector<BegunStorm> FreezeOne(SoakJob* job) {
  const Task task = job->Pick(job->tasks());
  if (!job->CanBreak(task)) return {};
  job->Freeze(task);
  // Beyond its lease, perhaps.
  if (task.role == Role::kWorker) job->CountWorkerLosses(1);
  if (task.role == Role::kChief) job->CountWorkerLosses(kSoakTrainers);
  return {{absl::StrCat("freeze of ", task.ToString()), absl::Seconds(6), nullptr,
           [job, task] { job->Thaw(task); }, nullptr}};
}

// False, and the process goes on: it renews its lease just now, and holds the file.
bool StopOutsideRenewal(Process* owner, const std::string& model_dir) {
  owner->Signal(SIGSTOP);
  const auto stopped = [&] { return owner->IsStopped(); };
  if (WaitUntil(stopped, kSignalLimit) &&
      FileSystem::Real()->TryLock(JobFilePath(model_dir)).ok()) {
    return true;
  }
  owner->Signal(SIGCONT);
  return false;
}

std::optional<v1::JobFile> JobFileOf(const std::string& model_dir) {
  const auto found = ReadJobFile(FileSystem::Real(), model_dir);
  if (!found.ok() || !found->has_value()) return std::nullopt;
  return (*found)->job;
}

// The chief's machine is cut off, and another one, which shares the files but not the locks of this
// one's kernel, runs a successor. When that owns the model directory, the first chief goes on.
std::vector<BegunStorm> ReplacePausedChief(SoakJob* job) {
  if (!job->CanBreak(kChiefTask) || !job->HasStarted(kChiefTask)) return {};
  Process& running = job->job().process(kChiefTask);
  const std::optional<v1::JobFile> before = JobFileOf(job->model_dir());
  if (!before.has_value() || before->pid() != running.pid()) return {};
  if (!StopOutsideRenewal(&running, job->model_dir())) return {};
  EXPECT_EQ(RemoveFile(JobLockPath(job->model_dir())), absl::OkStatus());
  const auto paused = std::shared_ptr<Process>(job->Abandon(kChiefTask));
  job->CountWorkerLosses(kSoakTrainers);
  job->StartAgain(kChiefTask);
  BegunStorm storm;
  storm.what = absl::StrCat("pause of the chief of term ", before->term());
  storm.over = [job, term = before->term()] {
    const std::optional<v1::JobFile> now = JobFileOf(job->model_dir());
    return now.has_value() && now->term() > term;
  };
  storm.end = [paused] { paused->Signal(SIGCONT); };
  storm.expected = [job, paused] {
    const std::optional<int> code = paused->Poll();
    if (!code.has_value()) return false;
    job->Note(absl::StrCat("the chief that was paused ended with ", *code));
    EXPECT_EQ(*code, kExitPermanent) << paused->Log();
    return true;
  };
  return {storm};
}

// ---- Network, storage, modes.

std::vector<BegunStorm> BreakLink(SoakJob* job) {
  const SoakJob::Link link = job->Pick(job->links());
  LinkConditions conditions = link.healthy;
  const char* what = "reset";
  switch (job->Draw(0, 4)) {
    case 0:
      link.proxy->Reset();
      break;
    case 1:
      what = "hold";
      conditions.flow = Flow::kHold;
      break;
    case 2:
      what = "partition";
      conditions.flow = Flow::kPartition;
      break;
    case 3:
      what = "delay of 200 ms";
      conditions.delay = absl::Milliseconds(200);
      break;
    default:
      what = "resets after 20 kB";
      conditions.mean_bytes_to_reset = 20'000;
  }
  if (link.of_worker_to_chief) job->CountWorkerLosses(1);
  link.proxy->Set(conditions);
  return {{absl::StrCat(what, ": ", link.name), absl::Seconds(5), nullptr,
           [link] { link.proxy->Set(link.healthy); }, nullptr}};
}

std::vector<BegunStorm> BreakStorage(SoakJob* job, Storage storage, const std::string& what) {
  if (job->storage() != Storage::kGood) return {};
  job->SetStorage(storage);
  return {{what, absl::Seconds(3), nullptr, [job] { job->SetStorage(Storage::kGood); }, nullptr}};
}

std::vector<BegunStorm> HangStorage(SoakJob* job) {
  return BreakStorage(job, Storage::kHangs, "storage hangs");
}

std::vector<BegunStorm> FailStorage(SoakJob* job) {
  return BreakStorage(job, Storage::kErrs, "storage errs");
}

// As when the file system that it is on goes away and comes back.
std::vector<BegunStorm> LoseModelDirectory(SoakJob* job) {
  if (!job->NoneIsDown() || !job->AllHaveStarted()) return {};
  return BreakStorage(job, Storage::kLost, "model_dir is gone");
}

ConsistencyMode Synchronous() {
  ConsistencyMode mode;
  mode.kind = ConsistencyMode::kSynchronous;
  mode.replicas_to_aggregate = 2;
  mode.total_replicas = kSoakTrainers;
  return mode;
}

ConsistencyMode NotSynchronous(SoakJob* job) {
  ConsistencyMode mode;
  if (job->Draw(0, 1) == 0) return mode;
  mode.kind = ConsistencyMode::kBoundedStaleness;
  mode.staleness = 4;
  return mode;
}

std::vector<BegunStorm> SwitchMode(SoakJob* job) {
  if (!job->CanBreak(kChiefTask)) return {};
  job->SetMode(job->Draw(0, 2) == 0 ? Synchronous() : NotSynchronous(job));
  return {{"mode switched", absl::ZeroDuration(), nullptr, [] {}, nullptr}};
}

// Rounds of 40 ms and more follow one another, so another mode finds one open.
std::vector<BegunStorm> SwitchModeInMidRound(SoakJob* job) {
  if (!job->CanBreak(kChiefTask) || !job->SetMode(Synchronous())) return {};
  return {{"rounds until the mode is switched", absl::Seconds(1), nullptr,
           [job] {
             if (job->CanBreak(kChiefTask)) job->SetMode(NotSynchronous(job));
           },
           nullptr}};
}

constexpr Storm kStorms[] = {
    {"a process killed", 4, KillOne},
    {"all killed", 1, KillAll},
    {"a process asked to stop", 2, StopOne},
    {"a server drained", 3, DrainServer, false},
    {"a process frozen", 4, FreezeOne},
    {"the chief paused and replaced", 3, ReplacePausedChief, false},
    {"a link broken", 4, BreakLink},
    {"storage hangs", 2, HangStorage},
    {"storage errs", 2, FailStorage},
    {"model_dir gone", 4, LoseModelDirectory},
    {"the mode switched", 2, SwitchMode, false},
    {"the mode switched in mid-round", 2, SwitchModeInMidRound, false},
};

}  // namespace

std::vector<Storm> StormsOf(SoakCluster cluster) {
  std::vector<Storm> storms;
  for (const Storm& storm : kStorms) {
    if (storm.on_hosts || cluster == SoakCluster::kServers) storms.push_back(storm);
  }
  return storms;
}

}  // namespace keelson
