// A parameter server that comes back under its name, but at another address, like a pod that
// Kubernetes has recreated.
#include <string>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/e2e/job_config.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/job.h"
#include "tests/support/named_job.h"
#include "tests/support/private_names.h"

namespace keelson {
namespace {

// So many that the job is still at it when it has lost the server and found it again.
constexpr int kSteps = 2000;

class MovedServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!PrivateNames::Permitted()) GTEST_SKIP() << "no mount namespaces here";
  }
};

TEST_F(MovedServerTest, IsFoundWhenItWasKilled) {
  NamedJob named({}, JobConfig(kSteps));
  Job& job = named.job();
  for (const Task& task :
       {PsTask(0), PsTask(1), kChiefTask, WorkerTask(0), WorkerTask(1), kEvaluatorTask}) {
    named.StartPublished(task);
  }
  job.WaitForStep(kChiefTask, 110);
  job.Kill(PsTask(1));
  named.Move(PsTask(1));
  named.StartPublished(PsTask(1));
  named.ExpectFinished(kSteps);
}

int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  return port;
}

// The connections to the former server are not closed.
TEST_F(MovedServerTest, IsFoundWhenItsNodeFellSilent) {
  NamedJob named({}, JobConfig(kSteps));
  Job& job = named.job();
  const std::string behind_node = job.Address(PsTask(1));
  const auto node = FaultProxy::Start(PortOf(behind_node), /*seed=*/1, named.port());
  ASSERT_TRUE(node.ok()) << node.status();
  job.Start(PsTask(1), {}, named.TfConfig(PsTask(1), behind_node));
  named.Publish(PsTask(1), "127.0.0.1");
  for (const Task& task : {PsTask(0), kChiefTask, WorkerTask(0), WorkerTask(1), kEvaluatorTask}) {
    named.StartPublished(task);
  }
  job.WaitForStep(kChiefTask, 110);
  (*node)->Set({.flow = LinkConditions::Flow::kHold});
  job.Kill(PsTask(1));
  named.StartPublished(PsTask(1));
  named.ExpectFinished(kSteps);
}

}  // namespace
}  // namespace keelson
