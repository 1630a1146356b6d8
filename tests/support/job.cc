#include "tests/support/job.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kPollPause = absl::Milliseconds(10);
constexpr absl::Duration kProgressLimit = absl::Seconds(60);
constexpr size_t kShownLogBytes = 3000;
constexpr char kJobToken[] = "token-of-the-job-under-test";

// "2026-11-20T20:15:03.120Z step=1200 loss=0.4312 ..."
struct ReportedStep {
  absl::Time time;
  int64_t step;
};

std::optional<ReportedStep> ParseMetricsLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  ReportedStep reported;
  std::string error;
  if (words.size() < 2 || !absl::StartsWith(words[1], "step=") ||
      !absl::ParseTime(absl::RFC3339_full, words[0], &reported.time, &error) ||
      !absl::SimpleAtoi(words[1].substr(5), &reported.step)) {
    return std::nullopt;
  }
  return reported;
}

std::vector<ReportedStep> ReportedSteps(const std::string& log) {
  std::vector<ReportedStep> steps;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const std::optional<ReportedStep> reported = ParseMetricsLine(line);
    if (reported.has_value()) steps.push_back(*reported);
  }
  return steps;
}

int PortCount(const Job::Layout& layout) {
  return 1 + layout.ps + layout.workers + layout.evaluators;
}

}  // namespace

std::string ProgramPath(const std::string& name) {
  const char* const folder = std::getenv("KEELSON_BINARY_DIR");
  EXPECT_NE(folder, nullptr) << "KEELSON_BINARY_DIR: expected the folder of the programs";
  return JoinPath(folder == nullptr ? "." : folder, name);
}

std::string ProgramOf(Role role) {
  return ProgramPath(role == Role::kPs ? "ps_server" : std::string(RoleName(role)));
}

std::vector<std::string> BehindFaultyStorage(const std::string& files,
                                             const std::string& hanging_while,
                                             const std::string& erring_while) {
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {"/usr/bin/env", absl::StrCat("KEELSON_FAULTY_FILES=", files),
          absl::StrCat("KEELSON_HANGING_WHILE=", hanging_while),
          absl::StrCat("KEELSON_ERRING_WHILE=", erring_while),
          absl::StrCat("LD_PRELOAD=", (tests / "libfaulty_storage.so").string())};
}

std::vector<std::string> ErrorLines(const std::string& log) {
  std::vector<std::string> errors;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StartsWith(line, "E ")) errors.emplace_back(line);
  }
  return errors;
}

int64_t LastReportedStep(const std::string& log) {
  int64_t highest = -1;  // An evaluation is of an earlier step than the line before it.
  for (const ReportedStep& line : ReportedSteps(log)) highest = std::max(highest, line.step);
  return highest;
}

int64_t FirstReportedStep(const std::string& log) {
  const std::vector<ReportedStep> steps = ReportedSteps(log);
  return steps.empty() ? -1 : steps.front().step;
}

bool WaitUntil(const std::function<bool()>& condition, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kPollPause);
  }
  return true;
}

Job::Job(const Layout& layout, const std::string& config)
    : layout_(layout),
      directory_(FreshDirectory()),
      model_dir_(JoinPath(directory_, "model")),
      ports_(PortCount(layout)) {
  const std::string path = JoinPath(directory_, "config.textproto");
  EXPECT_TRUE(WriteFileAtomically(path, config).ok());
  EXPECT_TRUE(WriteFileAtomically(TokenPath(), kJobToken).ok());
  EXPECT_EQ(chmod(TokenPath().c_str(), 0600), 0);
  flags_ = {absl::StrCat("--config=", path), absl::StrCat("--model_dir=", model_dir_),
            absl::StrCat("--job_token_file=", TokenPath())};
  // The tasks share the machine.
  for (const Role role : {Role::kWorker, Role::kEvaluator}) AddFlag(role, "--compute_threads=1");
}

std::string Job::TokenPath() const { return JoinPath(directory_, "job_token"); }

Credentials Job::MemberCredentials(absl::string_view role) const {
  Credentials credentials;
  credentials.claim = {std::string(role), kJobToken, ""};
  return credentials;
}

std::vector<Task> Job::TasksOf(Role role) const {
  int count = 0;
  if (role == Role::kChief) count = layout_.chief ? 1 : 0;
  if (role == Role::kPs) count = layout_.ps;
  if (role == Role::kWorker) count = layout_.workers;
  if (role == Role::kEvaluator)
    count = layout_.evaluator == Evaluator::kNone ? 0 : layout_.evaluators;
  std::vector<Task> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back({role, i});
  return tasks;
}

int Job::Port(const Task& task) const {
  const auto moved = moved_.find(task);
  if (moved != moved_.end()) return (*moved->second)[0];
  switch (task.role) {
    case Role::kChief:
      return ports_[0];
    case Role::kPs:
      return ports_[1 + task.index];
    case Role::kWorker:
      return ports_[1 + layout_.ps + task.index];
    case Role::kEvaluator:
      return ports_[1 + layout_.ps + layout_.workers + task.index];
  }
  return 0;
}

std::string Job::Address(const Task& task) const { return absl::StrCat("127.0.0.1:", Port(task)); }

FaultProxy& Job::Link(const Task& from, const Task& to) {
  std::unique_ptr<FaultProxy>& link = links_[{from, to}];
  if (link == nullptr) {
    auto started = FaultProxy::Start(Port(to));
    EXPECT_TRUE(started.ok()) << started.status();
    link = *std::move(started);
  }
  return *link;
}

std::string Job::TfConfig(const Task& task) const {
  nlohmann::json cluster = nlohmann::json::object();
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    if (role == Role::kEvaluator && layout_.evaluator != Evaluator::kListed) continue;
    for (const Task& member : TasksOf(role)) {
      const auto link = links_.find({task, member});
      cluster[std::string(RoleName(role))].push_back(
          link == links_.end() ? Address(member) : link->second->address());
    }
  }
  const nlohmann::json self = {{"type", std::string(RoleName(task.role))}, {"index", task.index}};
  return nlohmann::json({{"cluster", cluster}, {"task", self}, {"environment", "cloud"}}).dump();
}

std::vector<std::string> Job::FlagsOf(Role role) const {
  std::vector<std::string> flags = flags_;
  const auto own = role_flags_.find(role);
  if (own == role_flags_.end()) return flags;
  for (const std::string& flag : own->second) {
    const std::string name = flag.substr(0, flag.find('='));
    std::erase_if(flags, [&name](const std::string& of_all) {
      return of_all.substr(0, of_all.find('=')) == name;
    });
  }
  flags.insert(flags.end(), own->second.begin(), own->second.end());
  return flags;
}

void Job::UseProgram(const Task& task, const std::string& name,
                     const std::map<std::string, std::string>& environment) {
  programs_[task] = {ProgramPath(name), environment};
}

void Job::Start(const Task& task, const std::vector<std::string>& flags,
                const std::optional<std::string>& tf_config) {
  const auto program = programs_.find(task);
  Process::Command command;
  if (program != programs_.end()) command.environment = program->second.environment;
  command.argv = wrapper_;
  command.argv.push_back(program == programs_.end() ? ProgramOf(task.role) : program->second.path);
  for (const std::vector<std::string>& part : {FlagsOf(task.role), flags}) {
    command.argv.insert(command.argv.end(), part.begin(), part.end());
  }
  const std::string variable = tf_config.value_or(TfConfig(task));
  if (!variable.empty()) command.environment["TF_CONFIG"] = variable;
  command.log_path =
      JoinPath(directory_, absl::StrCat(task.ToString(), "-start-", starts_++, ".log"));
  auto process = Process::Start(command);
  ASSERT_TRUE(process.ok()) << process.status();
  processes_[task] = *std::move(process);
}

void Job::StartAll() {
  for (const Role role : {Role::kPs, Role::kChief, Role::kWorker, Role::kEvaluator}) {
    for (const Task& task : TasksOf(role)) Start(task);
  }
}

std::unique_ptr<Process> Job::Abandon(const Task& task) {
  auto ports = std::make_unique<ReservedPorts>(1);
  moved_[task] = std::move(ports);
  for (const auto& [ends, link] : links_) {
    if (ends.second != task) continue;
    link->LeadTo(Port(task));
    link->Reset();
  }
  return std::move(processes_.extract(task).mapped());
}

void Job::ExpectExit(const Task& task, int code, absl::Duration hang_limit) {
  const std::optional<int> found = process(task).Wait(hang_limit);
  EXPECT_TRUE(found.has_value()) << task.ToString() << " still runs\n" << EndOfLog(task);
  if (!found.has_value()) {
    process(task).Signal(SIGKILL);
    return;
  }
  EXPECT_EQ(*found, code) << task.ToString() << "\n" << EndOfLog(task);
}

absl::Time Job::Kill(const Task& task) {
  const absl::Time now = absl::Now();
  process(task).Signal(SIGKILL);
  ExpectExit(task, 128 + SIGKILL);
  return now;
}

void Job::ExpectAllDone(absl::Duration hang_limit) { ExpectAllDoneBut({}, hang_limit); }

void Job::ExpectAllDoneBut(const std::vector<Task>& killed, absl::Duration hang_limit) {
  // All are watched at once, so that each one's end is seen when it happens.
  WaitUntil(
      [this] {
        bool all = true;
        for (auto& [task, process] : processes_) all &= process->Poll().has_value();
        return all;
      },
      hang_limit);
  for (const auto& [task, process] : processes_) {
    if (std::find(killed.begin(), killed.end(), task) != killed.end()) continue;
    ExpectExit(task, 0, absl::ZeroDuration());
  }
}

void Job::WaitForStep(const Task& leader, int64_t step) {
  EXPECT_TRUE(WaitUntil([&] { return LastReportedStep(Log(leader)) >= step; }, kProgressLimit))
      << "step " << step << "\n"
      << EndOfLog(leader);
}

void Job::WaitForLog(const Task& task, const std::string& text, int times) {
  const auto found = [&] {
    const std::vector<std::string> parts = absl::StrSplit(Log(task), text);
    return static_cast<int>(parts.size()) > times;
  };
  EXPECT_TRUE(WaitUntil(found, kProgressLimit)) << text << "\n" << EndOfLog(task);
}

double Job::SecondsFromStepToEnd(const Task& leader, int64_t step) const {
  absl::Time reported = absl::InfiniteFuture();
  for (const ReportedStep& line : ReportedSteps(Log(leader))) {
    if (line.step >= step) reported = std::min(reported, line.time);
  }
  absl::Time ended = absl::InfinitePast();
  for (const auto& [task, process] : processes_) ended = std::max(ended, process->ended_at());
  return absl::ToDoubleSeconds(ended - reported);
}

std::string Job::EndOfLog(const Task& task) const {
  const std::string log = Log(task);
  return log.substr(log.size() - std::min(log.size(), kShownLogBytes));
}

}  // namespace keelson
