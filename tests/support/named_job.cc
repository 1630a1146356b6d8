#include "tests/support/named_job.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr Role kRoles[] = {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator};

}  // namespace

NamedJob::NamedJob(const Job::Layout& layout, const std::string& config)
    : ports_(1), job_(layout, config) {
  job_.RunBehind(names_.Wrapper());
  for (const Role role : kRoles) {
    for (const Task& task : job_.TasksOf(role)) hosts_[task] = FreshHost();
  }
}

std::string NamedJob::Name(const Task& task) {
  return absl::StrCat("mnist-", task.ToString(), ".ns.svc");
}

std::string NamedJob::FreshHost() {
  // The port is this job's alone, so is the network that is named after it.
  return absl::StrCat("127.", port() / 256, ".", port() % 256, ".", ++fresh_hosts_);
}

std::string NamedJob::TfConfig(const Task& task) const {
  return TfConfig(task, absl::StrCat(Host(task), ":", port()));
}

std::string NamedJob::TfConfig(const Task& task, const std::string& own_address) const {
  std::vector<std::pair<std::string, std::string>> addresses;
  for (const auto& [member, host] : hosts_) {
    const std::string name = absl::StrCat(Name(member), ":", port());
    addresses.emplace_back(job_.Address(member), member == task ? own_address : name);
  }
  return absl::StrReplaceAll(job_.TfConfig(task), addresses);
}

void NamedJob::Start(const Task& task) { job_.Start(task, {}, TfConfig(task)); }

void NamedJob::StartPublished(const Task& task) {
  Publish(task);
  Start(task);
}

void NamedJob::ExpectFinished(int64_t step) {
  job_.ExpectAllDone();
  ASSERT_EQ(*DoneStep(job_.model_dir()), step);
  EXPECT_EQ(*VerifiedLatestStep(job_.model_dir()), step);
  const auto evaluations = ReadEvaluations(job_.model_dir());
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_FALSE(evaluations->empty());
  EXPECT_EQ(evaluations->back().step, step);
}

}  // namespace keelson
