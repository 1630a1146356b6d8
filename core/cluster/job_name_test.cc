#include "core/cluster/job_name.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(JobNameOf, IsThatOfTheOperatorsAddresses) {
  ClusterSpec cluster;
  cluster.self = {Role::kEvaluator, 0};
  EXPECT_EQ(JobNameOf(cluster), "");
  cluster.ps = {{0, "127.0.0.1:2222"}, {1, "my-mnist-ps-1:2222"}};
  EXPECT_EQ(JobNameOf(cluster), "my-mnist");
  cluster.chief = {{0, "old-master-0.kubeflow.svc.cluster.local:2222"}};
  EXPECT_EQ(JobNameOf(cluster), "old");
  cluster.evaluators = {{0, "mnist-evaluator-0.kubeflow.svc:2222"}};
  EXPECT_EQ(JobNameOf(cluster), "mnist");
}

TEST(JobNameOf, OtherAddressesHaveNone) {
  for (const char* const address :
       {"", "host", "host:2222", "mnist-ps-1:2222", "mnist-chief-1:2222", "-chief-0:2222",
        "chief-0:2222", "mnist-chief-00:2222", "a.mnist-chief-0:2222", "[::1]:2222"}) {
    ClusterSpec cluster;
    cluster.self = {Role::kWorker, 0};
    cluster.chief = {{0, address}};
    EXPECT_EQ(JobNameOf(cluster), "") << address;
  }
}

}  // namespace
}  // namespace keelson
