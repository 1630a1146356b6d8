// A job whose servers somebody without its token attacks for KEELSON_STRANGER_SECONDS (20): it ends
// as if nobody had been there.

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/cluster/membership_id.h"
#include "core/rpc/channel.h"
#include "core/rpc/raw_client.h"
#include "core/wire/bulk_messages.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/stranger/file_trace.h"
#include "tests/stranger/memory_groups.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "worker/chief_session.h"
#include "worker/progress.h"

namespace keelson {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kGroupBytes = 512 * kMebibyte;
constexpr int64_t kMostResidentBytes = 400 * kMebibyte;
// Each way between worker and server: at most kMostStepsPerSecond, so that the job lasts as long as
// the attack.
constexpr absl::Duration kPaceDelay = absl::Milliseconds(8);
constexpr int kMostStepsPerSecond = 62;
// The pace before and after the attack.
constexpr absl::Duration kQuiet = absl::Seconds(3);
constexpr absl::Duration kEndLimit = absl::Minutes(2);
constexpr absl::Duration kPollPause = absl::Milliseconds(50);

int AttackSeconds() {
  const char* const text = std::getenv("KEELSON_STRANGER_SECONDS");
  int seconds = 20;
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &seconds)) << text;
  return seconds;
}

// strace delays each thread that a server starts, and so the honest calls that are measured.
bool Traced() {
  const char* const text = std::getenv("KEELSON_STRANGER_TRACED");
  return (text == nullptr || absl::string_view(text) != "0") && CanTraceFiles();
}

// The attack gives way to whatever else the machine does, and so may take longer.
int StepsFor(int seconds) { return (3 * seconds + 10) * kMostStepsPerSecond; }

// A second worker of the job, which makes no step: it pulls, again and again.
class Puller {
 public:
  explicit Puller(const Job& job)
      : credentials_(job.MemberCredentials("worker")),
        chief_(ConnectChiefService(job.Address(kChiefTask), credentials_)),
        server_address_(job.Address(PsTask(0))),
        thread_([this] { Run(); }) {}
  ~Puller() {
    stop_.Raise();
    thread_.join();
  }

  struct Figures {
    size_t calls = 0;
    int64_t failed = 0;
    absl::Duration p50, p99;
  };
  // Of the calls since the start, or since Take was called last.
  Figures Take() {
    MutexLock lock(&mu_);
    std::vector<absl::Duration> times = std::exchange(times_, {});
    std::sort(times.begin(), times.end());
    if (times.empty()) return {0, std::exchange(failed_, 0), {}, {}};
    return {times.size(), std::exchange(failed_, 0), times[times.size() / 2],
            times[times.size() * 99 / 100]};
  }

 private:
  void Run() {
    v1::ShardStatus status;
    EXPECT_EQ(
        ConnectParameterControl("ps-0", server_address_, credentials_)->GetStatus({}, &status),
        absl::OkStatus());
    Progress progress;
    ChiefSession::Options self;
    self.self = WorkerTask(1);
    self.membership = RandomMembershipId();
    self.config_hash = status.config_hash();
    ChiefSession session(self, chief_.get(), &progress, Clock::Real(), &left_);
    ASSERT_EQ(session.Join(), absl::OkStatus());
    const auto model = session.WaitForModel();
    ASSERT_TRUE(model.ok()) << model.status();
    BulkRequest pull;
    pull.role = v1::ROLE_WORKER;
    pull.task_index = 1;
    pull.incarnation = self.membership.incarnation;
    pull.membership_secret = self.membership.secret;
    pull.member_epoch = model->member_epoch();
    pull.placement_fingerprint = model->placement_fingerprint();
    pull.ranges = {{0, 0, 1, WireFormat::kFloat32, WireFormat::kFloat32}};
    PullUntilStopped(EncodeBulkRequest(pull, 0));
    EXPECT_EQ(session.status(), absl::OkStatus());
    session.Leave();
  }

  void PullUntilStopped(const std::string& message) {
    const auto channel = CreateChannel(server_address_, grpc::InsecureChannelCredentials());
    RawCallQueue calls(credentials_.claim);
    while (!stop_.WaitFor(absl::Milliseconds(5))) {
      const absl::Time begin = absl::Now();
      ByteRope request;
      request.AppendCopy(message);
      calls.Start(channel, "/keelson.v1.ParameterService/Pull", std::move(request),
                  absl::Seconds(20), 1);
      const auto done = calls.Next(kEndLimit);
      ASSERT_TRUE(done.has_value());
      const grpc::StatusCode code = done->status.error_code();
      // The server has not heard of this member yet.
      if (code == grpc::StatusCode::UNAVAILABLE && pulled_ == 0) continue;
      MutexLock lock(&mu_);
      ++pulled_;
      times_.push_back(absl::Now() - begin);
      if (code != grpc::StatusCode::OK) {
        ++failed_;
        last_error_ = done->status.error_message();
      }
    }
    if (!last_error_.empty()) std::printf("an honest call failed: %s\n", last_error_.c_str());
  }

  const Credentials credentials_;
  const std::unique_ptr<ChiefService> chief_;
  const std::string server_address_;
  StopSignal left_;  // of the session, which leaves after the last pull
  StopSignal stop_;
  Mutex mu_;
  std::vector<absl::Duration> times_ ABSL_GUARDED_BY(mu_);
  int64_t failed_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t pulled_ = 0;  // of the thread's, as the next one
  std::string last_error_;
  std::thread thread_;
};

// The highest resident memory of processes, which is read while they run.
class ResidentMemory {
 public:
  explicit ResidentMemory(std::map<std::string, pid_t> processes)
      : processes_(std::move(processes)), thread_([this] { Run(); }) {}
  ~ResidentMemory() { Stop(); }

  // By name.
  const std::map<std::string, int64_t>& Stop() {
    stop_.Raise();
    if (thread_.joinable()) thread_.join();
    return peaks_;
  }

 private:
  void Run() {
    do {
      for (const auto& [name, pid] : processes_) {
        std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
        int64_t kilobytes = 0;
        for (std::string word; status >> word;) {
          if (word == "VmHWM:" && status >> kilobytes) peaks_[name] = kilobytes << 10;
        }
      }
    } while (!stop_.WaitFor(kPollPause));
  }

  const std::map<std::string, pid_t> processes_;
  std::map<std::string, int64_t> peaks_;
  StopSignal stop_;
  std::thread thread_;
};

// Where a job's processes run: each in a memory group and traced, where that is possible, in an
// empty folder that is their home too.
class Cell {
 public:
  Cell() : home_(FreshDirectory()), traces_(FreshDirectory()), traced_(Traced()) {
    auto groups = MemoryGroups::Make(kGroupBytes);
    if (groups.ok()) groups_ = *std::move(groups);
    if (!groups.ok()) {
      std::printf("no memory groups: %s\n", std::string(groups.status().message()).c_str());
    }
    if (!traced_) std::printf("no strace: only their home is looked at for files\n");
  }

  std::vector<std::string> Wrapper() const {
    const std::string group = groups_ == nullptr ? "" : absl::StrCat(groups_->Command(), "\n");
    const std::string become = traced_ ? TraceCommand(absl::StrCat(traces_, "/$$")) : "exec \"$@\"";
    return {"/bin/sh", "-c",
            absl::StrCat(group, "cd '", home_, "' && export HOME=$PWD TMPDIR=$PWD\n", become),
            "sh"};
  }

  // After the process's end. Fails the test if it has changed files outside of `folder`.
  void ExpectOnlyIn(const std::string& folder, pid_t pid) const {
    EXPECT_TRUE(fs::is_empty(home_));
    if (!traced_) return;
    std::vector<std::string> outside;
    for (const std::string& path : ChangedPaths(ReadTrace(absl::StrCat(traces_, "/", pid), pid))) {
      if (path != folder && !absl::StartsWith(path, folder + "/")) outside.push_back(path);
    }
    EXPECT_THAT(outside, IsEmpty());
  }

  int64_t PeakGroupBytes(pid_t pid) const {
    return groups_ == nullptr ? -1 : groups_->PeakBytes(pid);
  }

 private:
  const std::string home_;
  const std::string traces_;
  const bool traced_;
  std::unique_ptr<MemoryGroups> groups_;
};

std::vector<Task> TasksOf(const Job& job) {
  std::vector<Task> tasks;
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    for (const Task& task : job.TasksOf(role)) tasks.push_back(task);
  }
  return tasks;
}

const Job::Layout kLayout = {.ps = 1, .workers = 1};

ModelValues ValuesOf(const Job& job, int steps) {
  EXPECT_EQ(*DoneStep(job.model_dir()), steps);
  const auto values = ReadModelValues(absl::StrCat(job.model_dir(), "/model.ckpt-", steps));
  EXPECT_TRUE(values.ok()) << values.status();
  return values.value_or(ModelValues());
}

ModelValues TrainUndisturbed(int steps) {
  Job job(kLayout, JobConfig(steps));
  job.StartAll();
  job.ExpectAllDone(kEndLimit);
  return ValuesOf(job, steps);
}

// Fails the test unless the stranger found everything closed. Returns what it printed. `only`: see
// the stranger's flag.
std::string Attack(const Job& job, int seconds, const std::string& only) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "stranger";
  Process::Command command;
  command.argv = {program, absl::StrCat("--seconds=", seconds)};
  if (!only.empty()) command.argv.push_back(absl::StrCat("--only=", only));
  for (const Task& task : TasksOf(job)) {
    const std::string address = job.Address(task);
    command.argv.push_back(absl::StrCat("--port=", address.substr(address.rfind(':') + 1)));
  }
  command.log_path = absl::StrCat(FreshDirectory(), "/stranger.log");
  auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return "";
  EXPECT_EQ((*process)->Wait(absl::Seconds(seconds) + kEndLimit), 0) << (*process)->Log();
  return (*process)->Log();
}

void Print(const char* when, const Puller::Figures& figures) {
  std::printf("honest pulls %s: %zu, %d failed, p50 %s, p99 %s\n", when, figures.calls,
              static_cast<int>(figures.failed), absl::FormatDuration(figures.p50).c_str(),
              absl::FormatDuration(figures.p99).c_str());
}

// The figures of honest calls before and during the attack are printed. What they are depends on
// the machine, which the stranger uses too.
void AttackAndMeasure(const Job& job, int seconds, const std::string& only = "") {
  Puller puller(job);
  absl::SleepFor(kQuiet);
  const Puller::Figures before = puller.Take();
  const int64_t first_step = LastReportedStep(job.Log(kChiefTask));
  const std::string report = Attack(job, seconds, only);
  const Puller::Figures during = puller.Take();
  const int64_t steps = LastReportedStep(job.Log(kChiefTask)) - first_step;
  std::printf("%ssteps of the job meanwhile: %d\n", report.c_str(), static_cast<int>(steps));
  Print("before", before);
  Print("during the attack", during);
  std::printf("p99 during the attack: %.2f times that before\n",
              absl::FDivDuration(during.p99, before.p99));
  EXPECT_GT(before.calls, 0u);
  EXPECT_EQ(before.failed, 0);
  EXPECT_EQ(during.failed, 0);
  EXPECT_GT(steps, seconds);
}

// What one kind of attack can do at the full rate, which the others slow down when they come along.
class OneAssaultTest : public testing::TestWithParam<const char*> {};

TEST_P(OneAssaultTest, FailsNoHonestCall) {
  constexpr int kSeconds = 2;
  const Cell cell;
  Job job(kLayout, JobConfig(StepsFor(kSeconds)));
  job.RunBehind(cell.Wrapper());
  job.Link(WorkerTask(0), PsTask(0)).Set({.delay = kPaceDelay});
  job.StartAll();
  std::map<std::string, pid_t> processes;
  for (const Task& task : TasksOf(job)) processes[task.ToString()] = job.process(task).pid();
  ResidentMemory memory(processes);
  job.WaitForStep(kChiefTask, 50);

  AttackAndMeasure(job, kSeconds, GetParam());

  job.Link(WorkerTask(0), PsTask(0)).Heal();
  job.ExpectAllDone(kEndLimit);
  for (const auto& [name, peak] : memory.Stop()) EXPECT_LT(peak, kMostResidentBytes) << name;
}

INSTANTIATE_TEST_SUITE_P(StrangerAttackTest, OneAssaultTest,
                         testing::Values("window updates (thousands)",
                                         "calls that are reset (hundreds)",
                                         "connections with 128 messages of 63 MiB",
                                         "connections with 128 messages of 4 GiB"),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : std::string(info.param)) {
                             if (absl::ascii_isalnum(c)) name += c;
                           }
                           return name;
                         });

TEST(StrangerAttackTest, ChangesNothing) {
  const int seconds = AttackSeconds();
  const int steps = StepsFor(seconds);
  const Cell cell;
  Job job(kLayout, JobConfig(steps));
  job.RunBehind(cell.Wrapper());
  job.Link(WorkerTask(0), PsTask(0)).Set({.delay = kPaceDelay});
  job.StartAll();
  std::map<std::string, pid_t> processes;
  for (const Task& task : TasksOf(job)) processes[task.ToString()] = job.process(task).pid();
  ResidentMemory memory(processes);
  job.WaitForStep(kChiefTask, 50);

  AttackAndMeasure(job, seconds);

  job.Link(WorkerTask(0), PsTask(0)).Heal();
  job.ExpectAllDone(kEndLimit);
  const std::string folder = fs::canonical(job.model_dir()).parent_path();
  for (const auto& [name, peak] : memory.Stop()) {
    SCOPED_TRACE(name);
    const pid_t pid = processes.at(name);
    std::printf("%s: at most %d MiB resident, %d MiB in its group\n", name.c_str(),
                static_cast<int>(peak / kMebibyte),
                static_cast<int>(cell.PeakGroupBytes(pid) / kMebibyte));
    EXPECT_LT(peak, kMostResidentBytes);
    cell.ExpectOnlyIn(folder, pid);
  }
  EXPECT_EQ(ErrorLines(job.Log(WorkerTask(0))), std::vector<std::string>());
  EXPECT_TRUE(ValuesOf(job, steps) == TrainUndisturbed(steps));
}

}  // namespace
}  // namespace keelson
