#include "core/cluster/cluster_spec.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

ClusterSpec TwoByTwo(Task self) {
  ClusterSpec spec;
  spec.distributed = true;
  spec.self = self;
  spec.chief = {{0, "j-chief-0:2222"}};
  spec.ps = {{0, "j-ps-0:2222"}, {1, "j-ps-1:2222"}};
  spec.workers = {{0, "j-worker-0:2222"}, {1, "j-worker-1:2222"}};
  return spec;
}

ClusterSpec WithoutServers(Task self) {
  ClusterSpec spec = TwoByTwo(self);
  spec.ps.clear();
  return spec;
}

TEST(ClusterSpecTest, TheChiefLeads) {
  EXPECT_TRUE(TwoByTwo({Role::kChief, 0}).IsChief());
  const ClusterSpec worker = TwoByTwo({Role::kWorker, 0});
  EXPECT_FALSE(worker.IsChief());
  EXPECT_FALSE(worker.chief_is_worker());
  EXPECT_THAT(worker.ChiefAddress(), Optional(Eq("j-chief-0:2222")));
}

TEST(ClusterSpecTest, WorkerZeroLeadsWithoutAChief) {
  for (int index : {0, 1}) {
    ClusterSpec spec = TwoByTwo({Role::kWorker, index});
    spec.chief.clear();
    EXPECT_TRUE(spec.chief_is_worker());
    EXPECT_EQ(spec.IsChief(), index == 0);
    EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("j-worker-0:2222")));
  }
}

TEST(ClusterSpecTest, ASparseClusterDoesNotMakeWorkerZeroTheChief) {
  ClusterSpec spec = TwoByTwo({Role::kWorker, 0});
  spec.chief.clear();
  spec.sparse = true;
  EXPECT_FALSE(spec.IsChief());
  EXPECT_EQ(spec.ChiefAddress(), std::nullopt);
}

TEST(ClusterSpecTest, WithoutAClusterTheChiefLeadsAndHasNoAddress) {
  ClusterSpec spec;
  spec.self = {Role::kChief, 0};
  EXPECT_TRUE(spec.IsChief());
  EXPECT_EQ(spec.ChiefAddress(), std::nullopt);
  EXPECT_EQ(spec.SelfAddress(), std::nullopt);
  EXPECT_TRUE(spec.Validate().ok());
  EXPECT_EQ(spec.ToString(), "role=chief-0 world: this process alone");
}

TEST(ClusterSpecTest, KnowsTheNameOfItsHost) {
  ClusterSpec spec;
  spec.self = {Role::kPs, 0};
  EXPECT_EQ(spec.SelfHostName(), "");
  spec.ps[0] = "mnist-ps-0.mnist:2222";
  EXPECT_EQ(spec.SelfHostName(), "mnist-ps-0.mnist");
  for (const char* number : {"10.0.0.1:2222", "[::1]:2222", "localhost:2222"}) {
    spec.ps[0] = number;
    EXPECT_EQ(spec.SelfHostName(), "");
  }
}

TEST(ClusterSpecTest, ListensOnAllInterfacesForANameAndOnTheHostForANumber) {
  ClusterSpec spec = TwoByTwo({Role::kPs, 1});
  spec.ps[1] = "j-ps-1.ns.svc:2345";
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2345");
  spec.ps[1] = "127.0.0.7:2222";
  EXPECT_EQ(spec.ListenAddress(), "127.0.0.7:2222");
  spec.ps[1] = "localhost:2222";
  EXPECT_EQ(spec.ListenAddress(), "localhost:2222");
  spec.ps[1] = "[::1]:2222";
  EXPECT_EQ(spec.ListenAddress(), "[::1]:2222");
  spec.listen_port = 4000;
  EXPECT_EQ(spec.ListenAddress(), "[::1]:4000");
}

TEST(ClusterSpecTest, ListensWhereItsRolesSoleEntrySaysElseOnTheDefaultPort) {
  ClusterSpec spec;
  spec.distributed = true;
  spec.self = {Role::kPs, 3};
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2222");
  spec.ps = {{0, "j-ps-3:2345"}};
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2345");
  spec.ps[1] = "j-ps-1:2346";
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2222");
}

TEST(ClusterSpecTest, PrintsTheWorld) {
  ClusterSpec spec = TwoByTwo({Role::kWorker, 1});
  EXPECT_EQ(spec.ToString(),
            "role=worker-1 world: chief=1 ps=2 worker=2 evaluator=0 led by chief-0 at "
            "j-chief-0:2222");
  spec.chief.clear();
  EXPECT_THAT(spec.ToString(), HasSubstr("led by worker-0 at j-worker-0:2222"));
  spec.sparse = true;
  EXPECT_THAT(spec.ToString(), HasSubstr("known world: chief=0"));
  EXPECT_THAT(spec.ToString(), HasSubstr("led by chief-0 at an address not yet known"));
}

TEST(ClusterSpecTest, PrintsAWorldWithoutServers) {
  EXPECT_EQ(WithoutServers({Role::kWorker, 1}).ToString(),
            "role=worker-1 world: chief=1 worker=2 evaluator=0 without servers led by chief-0 at "
            "j-chief-0:2222");
}

TEST(ClusterSpecTest, PrintsWhereTheClusterComesFromAndWhatIsIgnored) {
  ClusterSpec spec = WithoutServers({Role::kWorker, 1});
  spec.source = "TF_CONFIG";
  EXPECT_THAT(spec.ToString(), HasSubstr(" without servers, from TF_CONFIG, led by chief-0 at"));
  spec.ignored = {"RANK"};
  EXPECT_THAT(spec.ToString(),
              HasSubstr(", from TF_CONFIG (RANK is set too, and ignored), led by chief-0 at"));
  spec.ignored = {"RANK", "WORLD_SIZE"};
  EXPECT_THAT(spec.ToString(), HasSubstr(" (RANK, WORLD_SIZE are set too, and ignored), led by"));
  ClusterSpec alone;
  alone.self = {Role::kEvaluator, 0};
  alone.ignored = {"RANK"};
  EXPECT_EQ(alone.ToString(),
            "role=evaluator-0 world: this process alone (RANK is set too, and ignored)");
}

TEST(ClusterSpecTest, ACompleteClusterWithoutServersIsCollective) {
  for (Role role : {Role::kChief, Role::kWorker, Role::kEvaluator}) {
    EXPECT_TRUE(WithoutServers({role, 0}).collective()) << RoleName(role);
    EXPECT_TRUE(WithoutServers({role, 0}).Validate().ok()) << RoleName(role);
    EXPECT_FALSE(TwoByTwo({role, 0}).collective()) << RoleName(role);
    ClusterSpec alone;
    alone.self = {role, 0};
    EXPECT_FALSE(alone.collective()) << RoleName(role);
  }
  EXPECT_FALSE(WithoutServers({Role::kPs, 0}).collective());
}

TEST(ClusterSpecTest, TheChiefAndTheWorkersHostTheShardsOfACollectiveCluster) {
  const Task chief{Role::kChief, 0};
  const Task first{Role::kWorker, 0};
  const Task second{Role::kWorker, 1};
  for (const Task& self : {chief, first, second, Task{Role::kEvaluator, 0}}) {
    EXPECT_THAT(WithoutServers(self).ShardHosts(), ElementsAre(chief, first, second));
  }
  ClusterSpec workers = WithoutServers(second);
  workers.chief.clear();
  EXPECT_THAT(workers.ShardHosts(), ElementsAre(first, second));
  EXPECT_THAT(TwoByTwo(chief).ShardHosts(), IsEmpty());
}

TEST(ClusterSpecTest, TheWorkersProgramRunsTheChiefOfACollectiveClusterToo) {
  EXPECT_TRUE(WithoutServers({Role::kChief, 0}).RunBy(Role::kWorker));
  EXPECT_FALSE(TwoByTwo({Role::kChief, 0}).RunBy(Role::kWorker));
  EXPECT_FALSE(WithoutServers({Role::kWorker, 0}).RunBy(Role::kChief));
  EXPECT_FALSE(WithoutServers({Role::kEvaluator, 0}).RunBy(Role::kWorker));
}

TEST(ClusterSpecTest, OnlyTheChiefAndWorkersOfASparseClusterNeedServers) {
  for (Role role : {Role::kChief, Role::kWorker, Role::kPs, Role::kEvaluator}) {
    ClusterSpec spec = WithoutServers({role, 0});
    spec.sparse = true;
    EXPECT_FALSE(spec.collective());
    const bool needed = role == Role::kChief || role == Role::kWorker;
    EXPECT_EQ(spec.Validate().ok(), !needed) << RoleName(role);
    if (!needed) continue;
    EXPECT_EQ(spec.Validate().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(spec.Validate().message(),
              absl::StrCat("cluster: ps: expected at least one address for ", RoleName(role),
                           "-0 (TF_CONFIG cluster.ps or --ps_hosts), found none; a cluster without "
                           "servers lists its workers (TF_CONFIG cluster.worker as a list, or "
                           "--worker_hosts)"));
  }
}

TEST(ClusterSpecTest, ServersAreNumberedFromZero) {
  ClusterSpec spec = TwoByTwo({Role::kWorker, 0});
  spec.ps = {{0, "a:1"}, {2, "c:1"}};
  EXPECT_EQ(spec.Validate().message(),
            "cluster: ps: expected an address for every index from 0, found index 2 but not index "
            "1");
}

TEST(ClusterSpecTest, TwoTasksCannotShareAnAddress) {
  ClusterSpec spec = TwoByTwo({Role::kWorker, 0});
  spec.workers[1] = "j-ps-1:2222";
  EXPECT_EQ(spec.Validate().message(),
            "cluster: worker-1: expected an address of its own, found \"j-ps-1:2222\", which is "
            "also ps-1's");
}

TEST(ClusterSpecTest, AddressesAreChecked) {
  ClusterSpec spec = TwoByTwo({Role::kWorker, 0});
  spec.ps[1] = "j-ps-1";
  EXPECT_THAT(spec.Validate().message(), HasSubstr("cluster: ps-1: expected \"host:port\""));
}

TEST(ParseRoleTest, KnowsEveryNameInAnyCase) {
  EXPECT_THAT(ParseRole("chief"), Optional(Role::kChief));
  EXPECT_THAT(ParseRole("Master"), Optional(Role::kChief));
  EXPECT_THAT(ParseRole("PS"), Optional(Role::kPs));
  EXPECT_THAT(ParseRole("Worker"), Optional(Role::kWorker));
  EXPECT_THAT(ParseRole("EVALUATOR"), Optional(Role::kEvaluator));
  EXPECT_EQ(ParseRole("gpu"), std::nullopt);
  EXPECT_EQ(ParseRole(""), std::nullopt);
}

}  // namespace
}  // namespace keelson
