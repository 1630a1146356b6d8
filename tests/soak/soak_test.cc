// A counting job under random faults for some minutes; then all is healed, and what must hold is
// checked. tests/soak.sh runs it.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/client/services/grpc_chief_service.h"
#include "gtest/gtest.h"
#include "tests/support/counting_job.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int kServers = 2;
constexpr int kWorkers = 3;
// Each way from a worker to a server. So a worker does at most 50 steps a second, and the job lasts
// as long as it is meant to.
constexpr absl::Duration kPaceDelay = absl::Milliseconds(10);
constexpr int64_t kMostStepsPerSecond = kWorkers * 50;
// The most steps of one worker between two reports to the chief, at full speed, as after healing.
constexpr int64_t kMostUnreportedSteps = 2000;
constexpr absl::Duration kTick = absl::Milliseconds(50);
// What a process still does at its start after it has said that it starts.
constexpr absl::Duration kStartMargin = absl::Seconds(1);
constexpr absl::Duration kEndLimit = absl::Minutes(2);

// What a process holds of the machine.
struct Holdings {
  int64_t resident_bytes = 0;
  int64_t files = 0;
};

Holdings HoldingsOf(pid_t pid) {
  Holdings holdings;
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0;
  int64_t resident = 0;
  if (statm >> size >> resident) holdings.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  std::error_code error;
  for (auto i = std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), error);
       !error && i != std::filesystem::directory_iterator(); i.increment(error)) {
    ++holdings.files;
  }
  return holdings;
}

int64_t NumberFromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  int64_t number = otherwise;
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &number)) << name << "=" << text;
  return number;
}

CountingJobOptions JobOptions(absl::Duration duration) {
  CountingJobOptions options;
  options.max_steps = std::max<int64_t>(2000, kMostStepsPerSecond * absl::ToInt64Seconds(duration));
  options.save_steps = 100;
  return options;
}

class Soak {
 public:
  Soak(absl::Duration duration, uint64_t seed)
      : options_(JobOptions(duration)),
        start_(absl::Now()),
        end_(start_ + duration),
        random_(seed),
        job_({.ps = kServers, .workers = kWorkers}, CountingJobConfig(options_)) {
    job_.AddFlag(Role::kChief, "--lease=3");
    for (int s = 0; s < kServers; ++s) tasks_.push_back(PsTask(s));
    tasks_.push_back(kChiefTask);
    for (int w = 0; w < kWorkers; ++w) tasks_.push_back(WorkerTask(w));
    tasks_.push_back(kEvaluatorTask);
    for (int s = 0; s < kServers; ++s) {
      AddLink(kChiefTask, PsTask(s));
      for (int w = 0; w < kWorkers; ++w) AddLink(WorkerTask(w), PsTask(s));
    }
    for (int w = 0; w < kWorkers; ++w) AddLink(WorkerTask(w), kChiefTask);
    AddLink(kEvaluatorTask, kChiefTask);
  }

  void Run() {
    job_.StartAll();
    Note("started");
    absl::Time next_fault = start_ + absl::Seconds(3);
    while (absl::Now() < end_ && !testing::Test::HasFailure()) {
      if (absl::Now() >= next_fault) {
        CauseFault();
        next_fault = absl::Now() + absl::Milliseconds(Draw(100, 1500));
      }
      DoDue(absl::Now());
      WatchProcesses();
      absl::SleepFor(kTick);
    }
    HealAll();
    LeaveSynchronousMode();
    job_.ExpectAllDone(kEndLimit);
    CheckEnd();
  }

  void PrintLog() const {
    for (const std::string& line : events_) std::printf("%s\n", line.c_str());
    for (const Task& task : tasks_) {
      const std::string log = job_.Log(task);
      std::printf("---- %s\n%s\n", task.ToString().c_str(),
                  log.substr(log.size() - std::min<size_t>(log.size(), 3000)).c_str());
    }
  }

 private:
  using Flow = LinkConditions::Flow;
  struct Link {
    FaultProxy* proxy;
    std::string name;
    LinkConditions healthy;
    bool of_worker_to_chief = false;
  };
  struct Later {
    absl::Time due;
    std::function<void()> action;
  };
  // Since a process was started, once it has warmed up.
  struct Watched {
    pid_t pid = 0;
    absl::Time started;
    std::optional<Holdings> first;
    Holdings last;
  };

  // In [low, high].
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  template <typename T>
  T& Pick(std::vector<T>& from) {
    return from[Draw(0, static_cast<int>(from.size()) - 1)];
  }

  void Note(const std::string& event) {
    events_.push_back(
        absl::StrFormat("%7.2f s  %s", absl::ToDoubleSeconds(absl::Now() - start_), event));
  }

  void AddLink(const Task& from, const Task& to) {
    Link link = {&job_.Link(from, to), absl::StrCat(from.ToString(), " to ", to.ToString()), {}};
    link.of_worker_to_chief = from.role == Role::kWorker && to.role == Role::kChief;
    if (from.role == Role::kWorker && to.role == Role::kPs) link.healthy.delay = kPaceDelay;
    link.proxy->Set(link.healthy);
    links_.push_back(link);
  }

  // `most` milliseconds from now.
  void Schedule(int most, std::function<void()> action) {
    later_.push_back({absl::Now() + absl::Milliseconds(Draw(0, most)), std::move(action)});
  }
  // Events that are scheduled meanwhile wait for the next call.
  void DoDue(absl::Time now) {
    std::vector<Later> due;
    for (size_t i = 0; i < later_.size();) {
      if (later_[i].due > now) {
        ++i;
        continue;
      }
      due.push_back(std::move(later_[i]));
      later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const Later& later : due) later.action();
  }

  // ---- Faults. Each heals itself after a while.

  void CauseFault() {
    switch (Draw(0, 9)) {
      case 0:
      case 1:
      case 2:
        return KillOne(Draw(0, 3) == 0 ? SIGTERM : SIGKILL);
      case 3:
        return Draw(0, 3) == 0 ? KillAll() : FreezeOne();
      case 4:
      case 5:
        return FreezeOne();
      case 6:
      case 7:
        return BreakLink();
      case 8:
        return LoseModelDirectory();
      default:
        return SwitchMode();
    }
  }

  bool CanBreak(const Task& task) const {
    return !down_.contains(task) && !frozen_.contains(task) && !directory_lost_;
  }

  void KillOne(int signal_number) {
    const Task task = Pick(tasks_);
    if (!CanBreak(task)) return;
    Note(absl::StrCat("signal ", signal_number, " to ", task.ToString()));
    job_.process(task).Signal(signal_number);
    down_.insert(task);
    Count(task);
    if (signal_number == SIGTERM) {
      Schedule(5000, [this, task] { StartAgain(task); });
      return;
    }
    EXPECT_EQ(job_.process(task).Wait(absl::Seconds(30)), 128 + signal_number);
    Schedule(Draw(0, 1) * 3000, [this, task] { StartAgain(task); });
  }

  void KillAll() {
    if (!down_.empty() || !frozen_.empty() || directory_lost_) return;
    Note("kill -9 to all");
    for (const Task& task : tasks_) job_.process(task).Signal(SIGKILL);
    for (const Task& task : tasks_) {
      job_.process(task).Wait(absl::Seconds(30));
      down_.insert(task);
      Count(task);
      Schedule(1000, [this, task] { StartAgain(task); });
    }
  }

  void StartAgain(const Task& task) {
    if (!down_.contains(task)) return;
    // A chief that was asked to stop may wait for a frozen server until it is killed.
    if (!job_.process(task).Poll().has_value()) Note(task.ToString() + " did not stop in time");
    Note(absl::StrCat("start of ", task.ToString()));
    down_.erase(task);
    watched_.erase(task);
    job_.Start(task);
  }

  // Counts a crash after which reports of pushes may be missing, or a server's steps.
  void Count(const Task& task) {
    if (task.role == Role::kWorker) ++worker_losses_;
    if (task.role == Role::kPs) killed_servers_.insert(task.index);
  }

  void FreezeOne() {
    const Task task = Pick(tasks_);
    if (!CanBreak(task)) return;
    Note(absl::StrCat("freeze of ", task.ToString()));
    job_.process(task).Signal(SIGSTOP);
    frozen_.insert(task);
    // Beyond its lease, perhaps.
    if (task.role == Role::kWorker) ++worker_losses_;
    if (task.role == Role::kChief) worker_losses_ += kWorkers;
    Schedule(6000, [this, task] { Thaw(task); });
  }
  void Thaw(const Task& task) {
    if (frozen_.erase(task) == 0) return;
    Note(absl::StrCat("end of the freeze of ", task.ToString()));
    job_.process(task).Signal(SIGCONT);
  }

  void BreakLink() {
    Link& link = Pick(links_);
    LinkConditions conditions = link.healthy;
    const char* what = "reset";
    switch (Draw(0, 4)) {
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
    Note(absl::StrCat(what, ": ", link.name));
    if (link.of_worker_to_chief) ++worker_losses_;
    link.proxy->Set(conditions);
    Schedule(5000, [&link] { link.proxy->Set(link.healthy); });
  }

  // As when the file system that it is on goes away and comes back.
  void LoseModelDirectory() {
    if (!down_.empty() || directory_lost_) return;
    // To a program that starts, a model directory that is none is bad configuration.
    if (!absl::c_all_of(tasks_, [&](const Task& task) { return HasStarted(task); })) return;
    Note("model_dir is gone");
    const std::string& path = job_.model_dir();
    if (rename(path.c_str(), absl::StrCat(path, ".away").c_str()) != 0) return;
    EXPECT_TRUE(WriteFileAtomically(path, "not a directory").ok());
    directory_lost_ = true;
    Schedule(3000, [this] { ReturnModelDirectory(); });
  }
  // Whether the task's newest process has read what it reads of the model directory at its start.
  bool HasStarted(const Task& task) const {
    const auto watched = watched_.find(task);
    if (watched == watched_.end() || absl::Now() < watched->second.started + kStartMargin) {
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
  void ReturnModelDirectory() {
    if (!directory_lost_) return;
    Note("model_dir is back");
    directory_lost_ = false;
    const std::string& path = job_.model_dir();
    EXPECT_EQ(unlink(path.c_str()), 0);
    EXPECT_EQ(rename(absl::StrCat(path, ".away").c_str(), path.c_str()), 0);
  }

  void SwitchMode() {
    v1::ConsistencyMode mode;
    switch (Draw(0, 2)) {
      case 0:
        mode.mutable_async();
        break;
      case 1:
        mode.mutable_bounded_staleness()->set_staleness(4);
        break;
      default:
        mode.mutable_synchronous()->set_replicas_to_aggregate(2);
        mode.mutable_synchronous()->set_total_replicas(kWorkers);
    }
    SetMode(mode);
  }
  bool SetMode(const v1::ConsistencyMode& mode) {
    v1::SetModeRequest request;
    *request.mutable_mode() = mode;
    v1::SetModeResponse response;
    const absl::Status status =
        ConnectChiefService(job_.Address(kChiefTask), job_.MemberCredentials("operator"))
            ->SetMode(request, &response);
    Note(absl::StrCat("mode ", mode.ShortDebugString(), ": ", status.ToString()));
    return status.ok();
  }

  // ---- What must hold meanwhile.

  void WatchProcesses() {
    for (const Task& task : tasks_) {
      if (down_.contains(task)) continue;
      Process& process = job_.process(task);
      const std::optional<int> code = process.Poll();
      if (code.has_value()) {
        EndedByItself(task, *code);
        continue;
      }
      Watched& watched = watched_[task];
      if (watched.pid != process.pid()) watched = {process.pid(), absl::Now(), {}, {}};
      watched.last = HoldingsOf(process.pid());
      if (!watched.first.has_value() && absl::Now() > watched.started + absl::Seconds(10)) {
        watched.first = watched.last;
      }
    }
  }

  // 138 asks to be started again (core/base/exit_code.h); the job is not done, so nothing else is
  // right.
  void EndedByItself(const Task& task, int code) {
    Note(absl::StrCat(task.ToString(), " ended with ", code));
    EXPECT_EQ(code, 138) << task.ToString();
    down_.insert(task);
    Count(task);
    Schedule(500, [this, task] { StartAgain(task); });
  }

  void CheckHoldings() {
    for (const auto& [task, watched] : watched_) {
      if (!watched.first.has_value()) continue;
      const Holdings& first = *watched.first;
      EXPECT_LE(watched.last.resident_bytes, 2 * first.resident_bytes + (64 << 20))
          << task.ToString();
      EXPECT_LE(watched.last.files, first.files + 64) << task.ToString();
    }
  }

  // ---- The end.

  void HealAll() {
    Note("healing all");
    CheckHoldings();
    ReturnModelDirectory();
    for (const Link& link : links_) link.proxy->Heal();
    for (const Task& task : tasks_) {
      Thaw(task);
      // It may have had to end while the others were broken.
      if (!down_.contains(task) && job_.process(task).Poll().has_value()) down_.insert(task);
      StartAgain(task);
    }
    later_.clear();
  }

  // Its steps take two batches each, so that the rest of the job could take longer than the limit.
  void LeaveSynchronousMode() {
    v1::ConsistencyMode mode;
    mode.mutable_async();
    const absl::Time limit = absl::Now() + kEndLimit;
    Process& chief = job_.process(kChiefTask);
    while (!chief.Poll().has_value() && absl::Now() < limit && !SetMode(mode)) {
      absl::SleepFor(kTick);
    }
  }

  void CheckEnd() {
    EXPECT_EQ(*DoneStep(job_.model_dir()), options_.max_steps);
    const auto snapshots =
        CheckpointDirectory(FileSystem::Real(), job_.model_dir(), Clock::Real()).List();
    ASSERT_TRUE(snapshots.ok()) << snapshots.status();
    ASSERT_FALSE(snapshots->empty());
    CountedSnapshot last;
    for (const SnapshotInfo& info : *snapshots) {
      const auto snapshot = ReadCountedSnapshot(info.prefix);
      EXPECT_TRUE(snapshot.ok()) << snapshot.status();
      if (!snapshot.ok()) return;
      last = *snapshot;
      EXPECT_EQ(last.global_step, info.step);
    }
    EXPECT_EQ(last.global_step, options_.max_steps);
    for (int s = 0; s < kServers; ++s) {
      const int64_t updates = last.updates[s];
      // A server that never crashed has every step; a step is done again only when its report was
      // lost.
      if (!killed_servers_.contains(s)) {
        EXPECT_GE(updates, options_.max_steps) << "ps-" << s;
      }
      EXPECT_LE(updates, options_.max_steps + worker_losses_ * kMostUnreportedSteps) << "ps-" << s;
      Note(absl::StrCat("ps-", s, ": ", updates, " pushes for ", options_.max_steps, " steps"));
    }
  }

  const CountingJobOptions options_;
  const absl::Time start_;
  const absl::Time end_;
  std::mt19937_64 random_;
  Job job_;
  std::vector<Task> tasks_;
  std::vector<Link> links_;
  std::vector<Later> later_;
  std::set<Task> down_;
  std::set<Task> frozen_;
  bool directory_lost_ = false;
  std::set<int> killed_servers_;
  int64_t worker_losses_ = 0;
  std::map<Task, Watched> watched_;
  std::vector<std::string> events_;
};

TEST(SoakTest, NothingIsLostUnderRandomFaults) {
  const int64_t seconds = NumberFromEnvironment("KEELSON_SOAK_SECONDS", 120);
  const int64_t seed = NumberFromEnvironment("KEELSON_SOAK_SEED", 1);
  std::printf("seed %lld, %lld s\n", static_cast<long long>(seed), static_cast<long long>(seconds));
  Soak soak(absl::Seconds(seconds), static_cast<uint64_t>(seed));
  soak.Run();
  if (!HasFailure()) return;
  std::printf("seed %lld failed; what happened:\n", static_cast<long long>(seed));
  soak.PrintLog();
}

}  // namespace
}  // namespace keelson
