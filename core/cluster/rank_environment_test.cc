#include "core/cluster/rank_environment.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
using ::testing::Pair;

using Variables = std::map<std::string, std::string, std::less<>>;

const Task kChief{Role::kChief, 0};

Task WorkerOf(int index) { return {Role::kWorker, index}; }

// What the operator gives the replicas of a PyTorchJob with a Master.
Variables PyTorchJob(int rank, int world_size) {
  return {{"PYTHONUNBUFFERED", "1"},
          {"MASTER_PORT", "23456"},
          {"PET_MASTER_PORT", "23456"},
          {"MASTER_ADDR", "mnist-master-0"},
          {"PET_MASTER_ADDR", "mnist-master-0"},
          {"WORLD_SIZE", absl::StrCat(world_size)},
          {"RANK", absl::StrCat(rank)},
          {"PET_NODE_RANK", absl::StrCat(rank)},
          {"PET_NPROC_PER_NODE", "auto"},
          {"PET_NNODES", absl::StrCat(world_size)}};
}

Variables Elastic() {
  return {{"PET_NPROC_PER_NODE", "2"},
          {"PET_RDZV_ENDPOINT", "mnist-worker-0:23456"},
          {"PET_RDZV_BACKEND", "c10d"},
          {"PET_NNODES", "2:4"},
          {"PET_STANDALONE", ""}};
}

Variables TrainJob(int rank) {
  return {{"PET_NNODES", "3"},
          {"PET_NPROC_PER_NODE", "8"},
          {"PET_NODE_RANK", absl::StrCat(rank)},
          {"PET_MASTER_ADDR", "mnist-node-0-0.mnist"},
          {"PET_MASTER_PORT", "29500"}};
}

Variables Torchrun(int rank) {
  return {{"LOCAL_RANK", "0"},       {"RANK", absl::StrCat(rank)},
          {"GROUP_RANK", "1"},       {"ROLE_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "1"}, {"WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node0"},  {"MASTER_PORT", "29500"},
          {"PET_NNODES", "1:4"},     {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
}

absl::StatusOr<std::optional<ClusterSpec>> ParseRanks(
    Variables variables, const std::string& host_name = "a-pod",
    const std::optional<std::string>& chief_address = std::nullopt) {
  return ParseRankEnvironment({std::move(variables), host_name}, chief_address);
}

ClusterSpec SpecOf(Variables variables, const std::string& host_name = "a-pod",
                   const std::optional<std::string>& chief_address = std::nullopt) {
  const auto spec = ParseRanks(std::move(variables), host_name, chief_address);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return {};
  EXPECT_TRUE(spec->has_value());
  if (!spec->has_value()) return {};
  EXPECT_TRUE((*spec)->collective());
  EXPECT_TRUE((*spec)->Validate().ok()) << (*spec)->Validate();
  return **spec;
}

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

// --- RANK ---

TEST(RankEnvironmentTest, TheMasterOfAPyTorchJobIsTheChief) {
  const ClusterSpec spec = SpecOf(PyTorchJob(0, 3));
  EXPECT_EQ(spec.self, kChief);
  EXPECT_TRUE(spec.IsChief());
  EXPECT_FALSE(spec.peers_register());
  EXPECT_EQ(spec.min_workers, 3);
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("mnist-master-0:23456")));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("mnist-master-0:23456")));
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:23456");
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(kChief, WorkerOf(0), WorkerOf(1)));
  EXPECT_EQ(spec.ToString(),
            "role=chief-0 world: chief=1 worker=2 evaluator=0 without servers, from RANK and "
            "WORLD_SIZE, led by chief-0 at mnist-master-0:23456 (the others' addresses follow)");
}

// Rank 2 runs in the pod mnist-worker-1.
TEST(RankEnvironmentTest, TheWorkersOfAPyTorchJobAreCountedFromOneRankLater) {
  const ClusterSpec spec = SpecOf(PyTorchJob(2, 3));
  EXPECT_EQ(spec.self, WorkerOf(1));
  EXPECT_FALSE(spec.IsChief());
  EXPECT_FALSE(spec.chief_is_worker());
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("mnist-master-0:23456")));
  EXPECT_THAT(spec.workers,
              ElementsAre(Pair(0, "mnist-worker-0:23456"), Pair(1, "mnist-worker-1:23456")));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("mnist-worker-1:23456")));
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:23456");
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(kChief, WorkerOf(0), WorkerOf(1)));
}

TEST(RankEnvironmentTest, APyTorchJobMayBeOfItsMasterAlone) {
  const ClusterSpec spec = SpecOf(PyTorchJob(0, 1));
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(kChief));
  EXPECT_THAT(spec.ToString(), EndsWith("led by chief-0 at mnist-master-0:23456"));
  const ClusterSpec elsewhere = SpecOf(With(PyTorchJob(0, 1), "MASTER_ADDR", "node0"));
  EXPECT_FALSE(elsewhere.peers_register());
  EXPECT_FALSE(elsewhere.derived_addresses);
}

// Operators up to 1.3 tell the master's pod that the master is at localhost.
TEST(RankEnvironmentTest, AMasterAtLocalhostIsReachedByTheOthers) {
  const Variables variables = {{"MASTER_PORT", "23456"},
                               {"MASTER_ADDR", "localhost"},
                               {"WORLD_SIZE", "3"},
                               {"RANK", "0"},
                               {"PYTHONUNBUFFERED", "0"}};
  const ClusterSpec spec = SpecOf(variables, "mnist-master-0");
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:23456");
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("mnist-master-0:23456")));
  EXPECT_THAT(spec.workers,
              ElementsAre(Pair(0, "mnist-worker-0:23456"), Pair(1, "mnist-worker-1:23456")));
  EXPECT_EQ(SpecOf(variables, "laptop").ListenAddress(), "localhost:23456");
  EXPECT_EQ(SpecOf(With(variables, "LOCAL_RANK", "0"), "mnist-master-0").ListenAddress(),
            "localhost:23456");
}

TEST(RankEnvironmentTest, OnOneMachineAPortFollowsAnother) {
  const Variables variables =
      With(With(Torchrun(1), "MASTER_ADDR", "127.0.0.1"), "TORCHELASTIC_USE_AGENT_STORE", "True");
  const ClusterSpec spec = SpecOf(variables);
  EXPECT_TRUE(spec.derived_addresses);
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("127.0.0.1:29501")));
  EXPECT_EQ(spec.ListenAddress(), "127.0.0.1:29502");
  EXPECT_EQ(SpecOf(With(TrainJob(2), "PET_MASTER_ADDR", "localhost")).ListenAddress(),
            "localhost:29502");
  EXPECT_EQ(SpecOf({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}, "laptop", "[::1]:7").ListenAddress(),
            "[::1]:10");
}

TEST(RankEnvironmentTest, AMasterAtANumberListensThere) {
  EXPECT_EQ(SpecOf(With(PyTorchJob(0, 2), "MASTER_ADDR", "127.0.0.7")).ListenAddress(),
            "127.0.0.7:23456");
  for (const char* address : {"fd00::7", "[fd00::7]"}) {
    const ClusterSpec spec = SpecOf(With(PyTorchJob(0, 2), "MASTER_ADDR", address));
    EXPECT_EQ(spec.ListenAddress(), "[fd00::7]:23456");
    EXPECT_TRUE(spec.peers_register());
  }
}

TEST(RankEnvironmentTest, AnElasticPyTorchJobWithAMasterHasARange) {
  Variables variables = PyTorchJob(2, 3);
  variables.merge(Elastic());
  variables["PET_NNODES"] = "2:4";
  const ClusterSpec spec = SpecOf(variables);
  EXPECT_EQ(spec.self, WorkerOf(1));
  EXPECT_EQ(spec.min_workers, 2);
  EXPECT_EQ(spec.workers.size(), 3u);
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(kChief, WorkerOf(0)));
  EXPECT_THAT(spec.ShardHosts(), Not(Contains(spec.self)));
  EXPECT_EQ(SpecOf(With(variables, "RANK", "1")).self, WorkerOf(0));
  EXPECT_THAT(spec.ignored, ElementsAre("PET_RDZV_ENDPOINT"));
  EXPECT_THAT(spec.ToString(), HasSubstr("world: chief=1 worker=3 evaluator=0 without servers, 2 "
                                         "processes suffice, from RANK"));
  variables["PET_NNODES"] = "1:2";
  EXPECT_THAT(SpecOf(variables).ToString(),
              HasSubstr(" worker=2 evaluator=0 without servers, 1 process suffices, from"));
}

TEST(RankEnvironmentTest, OtherHostsRegister) {
  const ClusterSpec spec = SpecOf(With(PyTorchJob(2, 3), "MASTER_ADDR", "mnist-worker-0"));
  EXPECT_TRUE(spec.peers_register());
  EXPECT_FALSE(spec.derived_addresses);
  EXPECT_THAT(spec.world_size, Optional(3));
  EXPECT_EQ(spec.SelfAddress(), std::nullopt);
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:0");
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(kChief, WorkerOf(0), WorkerOf(1)));
  EXPECT_THAT(spec.ToString(), HasSubstr("role=worker-1 world: 3 processes without servers, from"));
  EXPECT_THAT(spec.ToString(), EndsWith(" led by chief-0 at mnist-worker-0:23456"));
}

TEST(RankEnvironmentTest, TorchrunNumbersAsPyTorchJob) {
  EXPECT_EQ(SpecOf(Torchrun(0)).self, kChief);
  const ClusterSpec spec = SpecOf(Torchrun(1));
  EXPECT_EQ(spec.self, WorkerOf(0));
  EXPECT_TRUE(spec.peers_register());
  EXPECT_EQ(spec.min_workers, 1);
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(kChief));
  EXPECT_THAT(spec.ToString(), HasSubstr("world: 1 to 2 processes without servers"));
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("node0:29500")));
}

TEST(RankEnvironmentTest, TorchrunInATrainJobFindsItsPodsByTheirRank) {
  const Variables variables =
      With(With(Torchrun(1), "MASTER_ADDR", "mnist-node-0-0.mnist"), "PET_NODE_RANK", "1");
  EXPECT_THAT(SpecOf(variables).SelfAddress(), Optional(Eq("mnist-node-0-1.mnist:29500")));
  EXPECT_EQ(ParseRanks(With(variables, "PET_NODE_RANK", "0")).status(),
            absl::InvalidArgumentError(
                "RANK: expected 0, the pod's PET_NODE_RANK, by which the others find it (torchrun "
                "with --rdzv_backend=static gives it that), found \"1\""));
}

TEST(RankEnvironmentTest, TheLeaderListensBesideTorchrunsStore) {
  Variables variables = With(Torchrun(0), "TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_EQ(SpecOf(variables).ListenAddress(), "0.0.0.0:29501");
  variables["MASTER_PORT"] = "65535";
  EXPECT_EQ(ParseRanks(variables).status().message(),
            "MASTER_PORT: expected 1..65534, found \"65535\"");
}

TEST(RankEnvironmentTest, ScriptsMayBeSeveralOnAHost) {
  RankEnvironment environment = {Torchrun(1), "a-pod", /*several_per_host=*/true};
  environment.variables["MASTER_ADDR"] = "127.0.0.1";
  environment.variables["LOCAL_WORLD_SIZE"] = "2";
  environment.variables["LOCAL_RANK"] = "1";
  const auto spec = ParseRankEnvironment(environment, std::nullopt);
  ASSERT_TRUE(spec.ok() && spec->has_value()) << spec.status();
  EXPECT_EQ((*spec)->self, WorkerOf(0));
  EXPECT_TRUE((*spec)->peers_register());
  EXPECT_THAT((*spec)->ChiefAddress(), Optional(Eq("127.0.0.1:29500")));
  environment.variables["LOCAL_WORLD_SIZE"] = "1";
  environment.variables["LOCAL_RANK"] = "0";
  EXPECT_FALSE((*ParseRankEnvironment(environment, std::nullopt))->peers_register());
  // Without torchrun RANK counts pods and WORLD_SIZE processes.
  environment.variables = PyTorchJob(1, 3);
  environment.variables["PET_NPROC_PER_NODE"] = "2";
  EXPECT_EQ(ParseRankEnvironment(environment, std::nullopt).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// --- PET_NODE_RANK and PET_RDZV_ENDPOINT ---

TEST(RankEnvironmentTest, NodeZeroOfATrainJobLeads) {
  const ClusterSpec leader = SpecOf(TrainJob(0));
  EXPECT_EQ(leader.self, WorkerOf(0));
  EXPECT_TRUE(leader.IsChief());
  EXPECT_EQ(leader.ListenAddress(), "0.0.0.0:29500");
  const ClusterSpec spec = SpecOf(TrainJob(2));
  EXPECT_EQ(spec.self, WorkerOf(2));
  EXPECT_TRUE(spec.chief_is_worker());
  EXPECT_FALSE(spec.IsChief());
  EXPECT_EQ(spec.min_workers, 3);
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("mnist-node-0-2.mnist:29500")));
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:29500");
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(WorkerOf(0), WorkerOf(1), WorkerOf(2)));
  EXPECT_EQ(spec.ToString(),
            "role=worker-2 world: chief=0 worker=3 evaluator=0 without servers, from PET_NODE_RANK "
            "and PET_NNODES, led by worker-0 at mnist-node-0-0.mnist:29500 (the others' addresses "
            "follow)");
}

TEST(RankEnvironmentTest, TheEndpointsPodOfAnElasticPyTorchJobLeads) {
  const ClusterSpec leader = SpecOf(Elastic(), "mnist-worker-0");
  EXPECT_TRUE(leader.IsChief());
  EXPECT_EQ(leader.self, WorkerOf(0));
  EXPECT_EQ(leader.ListenAddress(), "0.0.0.0:23456");
  const ClusterSpec spec = SpecOf(Elastic(), "mnist-worker-3.mnist-worker.ns.svc");
  EXPECT_EQ(spec.self, WorkerOf(3));
  EXPECT_EQ(spec.min_workers, 2);
  EXPECT_EQ(spec.workers.size(), 4u);
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(WorkerOf(0), WorkerOf(1)));
  EXPECT_THAT(spec.ShardHosts(), Not(Contains(spec.self)));
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("mnist-worker-0:23456")));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("mnist-worker-3:23456")));
  EXPECT_EQ(spec.ToString(),
            "role=worker-3 world: chief=0 worker=4 evaluator=0 without servers, 2 processes "
            "suffice, from PET_RDZV_ENDPOINT and PET_NNODES, led by worker-0 at "
            "mnist-worker-0:23456 (the others' addresses follow)");
}

TEST(RankEnvironmentTest, AnEndpointMayBeANumber) {
  const Variables variables = With(Elastic(), "PET_RDZV_ENDPOINT", "127.0.0.5:23456");
  EXPECT_EQ(SpecOf(variables, "mnist-worker-0").ListenAddress(), "127.0.0.5:23456");
  EXPECT_FALSE(SpecOf(variables, "mnist-worker-1").IsChief());
  EXPECT_EQ(SpecOf(variables, "mnist-worker-1").ListenAddress(), "127.0.0.5:23457");
}

// --- mpirun ---

TEST(RankEnvironmentTest, MpirunGivesTheRankAlone) {
  const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  const Variables mpich = {{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}};
  const ClusterSpec worker = SpecOf(open_mpi, "node2", "node0:2222");
  EXPECT_EQ(worker.self, WorkerOf(1));
  EXPECT_TRUE(worker.peers_register());
  EXPECT_EQ(worker.source, "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE with --chief_hosts");
  EXPECT_THAT(worker.ChiefAddress(), Optional(Eq("node0:2222")));
  const ClusterSpec chief = SpecOf(mpich, "node0", "node0:2222");
  EXPECT_EQ(chief.self, kChief);
  EXPECT_EQ(chief.ListenAddress(), "0.0.0.0:2222");
  EXPECT_EQ(ParseRanks(open_mpi).status().message(),
            "--chief_hosts: expected the address at which the process of rank 0 listens, or "
            "MASTER_ADDR and MASTER_PORT, beside OMPI_COMM_WORLD_RANK, found none");
}

// As mpirun -x MASTER_ADDR -x MASTER_PORT has it.
TEST(RankEnvironmentTest, UnderMpirunMasterAddrSaysWhereRank0Is) {
  const Variables variables = {{"OMPI_COMM_WORLD_RANK", "2"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node0"},
                               {"MASTER_PORT", "2222"}};
  const ClusterSpec worker = SpecOf(variables, "node2");
  EXPECT_EQ(worker.self, WorkerOf(1));
  EXPECT_TRUE(worker.peers_register());
  EXPECT_EQ(worker.source, "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE");
  EXPECT_THAT(worker.ignored, IsEmpty());
  EXPECT_THAT(worker.ChiefAddress(), Optional(Eq("node0:2222")));
  const ClusterSpec flag = SpecOf(variables, "node2", "node1:1");
  EXPECT_THAT(flag.ChiefAddress(), Optional(Eq("node1:1")));
  EXPECT_THAT(flag.ignored, ElementsAre("MASTER_ADDR", "MASTER_PORT"));
  const ClusterSpec local = SpecOf(With(variables, "MASTER_ADDR", "127.0.0.1"), "node0");
  EXPECT_EQ(local.ListenAddress(), "127.0.0.1:2224");
}

// So does srun, for a single process too.
TEST(RankEnvironmentTest, OneProcessOfMpirunIsNoCluster) {
  const auto spec = ParseRanks({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MASTER_ADDR", "a"}});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec, std::nullopt);
}

// --- Mixtures ---

TEST(RankEnvironmentTest, NothingSetGivesNoCluster) {
  for (const Variables& variables :
       {Variables{}, Variables{{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}},
        Variables{{"PET_NNODES", "1"}}, Variables{{"LOCAL_RANK", "1"}}}) {
    const auto spec = ParseRanks(variables);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(*spec, std::nullopt);
  }
}

TEST(RankEnvironmentTest, TheFirstRowCounts) {
  Variables variables = PyTorchJob(1, 2);
  variables.merge(Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  const ClusterSpec ranked = SpecOf(variables);
  EXPECT_EQ(ranked.self, WorkerOf(0));
  EXPECT_THAT(ranked.ignored, ElementsAre("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"));
  EXPECT_THAT(ranked.ToString(), HasSubstr("from RANK and WORLD_SIZE (OMPI_COMM_WORLD_RANK, "
                                           "OMPI_COMM_WORLD_SIZE are set too, and ignored), led"));
  variables = TrainJob(1);
  variables.merge(Variables{{"WORLD_SIZE", "2"}, {"PMI_RANK", "0"}});
  variables["PET_RDZV_ENDPOINT"] = "mnist-worker-0:1";
  const ClusterSpec node = SpecOf(variables);
  EXPECT_EQ(node.self, WorkerOf(1));
  EXPECT_THAT(node.ignored, ElementsAre("WORLD_SIZE", "PET_RDZV_ENDPOINT", "PMI_RANK"));
}

TEST(RankEnvironmentTest, WhatSaysTheSameIsNoMixture) {
  EXPECT_THAT(SpecOf(PyTorchJob(1, 2)).ignored, IsEmpty());
  EXPECT_THAT(SpecOf(With(PyTorchJob(1, 2), "PET_NODE_RANK", "0")).ignored,
              ElementsAre("PET_NODE_RANK"));
  const ClusterSpec spec =
      SpecOf(With(With(PyTorchJob(1, 2), "PET_MASTER_PORT", "1"), "PET_MASTER_ADDR", "x"));
  EXPECT_THAT(spec.ignored, ElementsAre("PET_MASTER_ADDR", "PET_MASTER_PORT"));
}

TEST(RankEnvironmentTest, AnAddressFromElsewhereReplacesTheEnvironments) {
  const ClusterSpec master = SpecOf(PyTorchJob(0, 2), "a-pod", "other:1");
  EXPECT_EQ(master.ListenAddress(), "0.0.0.0:1");
  EXPECT_TRUE(master.peers_register());
  EXPECT_EQ(master.source, "RANK and WORLD_SIZE with --chief_hosts");
  EXPECT_THAT(master.ignored,
              ElementsAre("MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT"));
  EXPECT_THAT(SpecOf(TrainJob(1), "a-pod", "other:1").ChiefAddress(), Optional(Eq("other:1")));
  EXPECT_THAT(SpecOf(Elastic(), "mnist-worker-1", "other:1").ChiefAddress(),
              Optional(Eq("other:1")));
  EXPECT_TRUE(SpecOf({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "a-pod", "other:1").IsChief());
}

// --- Errors: the text has the variable and the value, the exit code is 2 ---

struct BadEnvironment {
  const char* name;
  Variables variables;
  std::string text;
  std::string host_name = "mnist-worker-1";
};

class RankEnvironmentErrorTest : public testing::TestWithParam<BadEnvironment> {};

TEST_P(RankEnvironmentErrorTest, IsNamed) {
  const absl::Status status = ParseRanks(GetParam().variables, GetParam().host_name).status();
  EXPECT_EQ(status, absl::InvalidArgumentError(GetParam().text));
  EXPECT_EQ(ExitCodeFor(status), kExitPermanent);
}

#define KEELSON_ONE_WORKER \
  " (one worker uses all devices of its pod: --nproc_per_node=1, nprocPerNode: \"1\"), found "

std::vector<BadEnvironment> BadEnvironments() {
  const Variables job = PyTorchJob(1, 2);
  return {
      {"Rank", With(job, "RANK", "one"), "RANK: expected 0..99999, found \"one\""},
      {"EmptyRank", With(job, "RANK", ""), "RANK: expected 0..99999, found \"\""},
      {"NegativeRank", With(job, "RANK", "-1"), "RANK: expected 0..99999, found \"-1\""},
      {"WorldSize", With(job, "WORLD_SIZE", "0"), "WORLD_SIZE: expected 1..100000, found \"0\""},
      {"HugeWorldSize", With(job, "WORLD_SIZE", "99999999999"),
       "WORLD_SIZE: expected 1..100000, found \"99999999999\""},
      {"NoWorldSize", Without(job, "WORLD_SIZE"),
       "WORLD_SIZE: expected the number of processes beside RANK, found none"},
      {"NoMasterAddr", Without(job, "MASTER_ADDR"),
       "MASTER_ADDR: expected the host of the first process beside RANK, found none"},
      {"NoMasterPort", Without(job, "MASTER_PORT"),
       "MASTER_PORT: expected the port of the first process beside RANK, found none"},
      {"MasterAddr", With(job, "MASTER_ADDR", "a b"),
       "MASTER_ADDR: expected a host's name or address, found \"a b\""},
      {"EmptyMasterAddr", With(job, "MASTER_ADDR", ""),
       "MASTER_ADDR: expected a host's name or address, found \"\""},
      {"AddressWithPort", With(job, "MASTER_ADDR", "mnist-master-0:23456"),
       "MASTER_ADDR: expected a host's name or address, found \"mnist-master-0:23456\""},
      {"MasterPort", With(job, "MASTER_PORT", "70000"),
       "MASTER_PORT: expected 1..65535, found \"70000\""},
      {"PortOfTheLast", With(With(job, "MASTER_ADDR", "localhost"), "MASTER_PORT", "65535"),
       "MASTER_PORT: expected a leader's port up to 65534, since of 2 processes at localhost rank "
       "r "
       "listens r ports further, found 65535"},
      {"PortOfTheLastPod", With(Elastic(), "PET_RDZV_ENDPOINT", "127.0.0.1:65533"),
       "PET_RDZV_ENDPOINT: expected a leader's port up to 65532, since of 4 processes at 127.0.0.1 "
       "rank r listens r ports further, found 65533"},
      {"RangeBesideRank", With(job, "PET_NNODES", "3:2"),
       "PET_NNODES: expected N or MIN:MAX within 1..100000, found \"3:2\""},
      {"LocalRank", With(Torchrun(1), "LOCAL_RANK", "1"),
       "LOCAL_RANK: expected 0" KEELSON_ONE_WORKER "\"1\""},
      {"LocalRankThatIsNone", With(Torchrun(1), "LOCAL_RANK", "x"),
       "LOCAL_RANK: expected 0" KEELSON_ONE_WORKER "\"x\""},
      {"LocalWorldSize", With(Torchrun(1), "LOCAL_WORLD_SIZE", "4"),
       "LOCAL_WORLD_SIZE: expected 1" KEELSON_ONE_WORKER "\"4\""},
      {"ProcessesPerNode", With(job, "PET_NPROC_PER_NODE", "2"),
       "PET_NPROC_PER_NODE: expected 1" KEELSON_ONE_WORKER "\"2\""},
      {"NodeRank", With(TrainJob(1), "PET_NODE_RANK", "x"),
       "PET_NODE_RANK: expected 0..2, found \"x\""},
      {"NodeRankOutside", TrainJob(3), "PET_NODE_RANK: expected 0..2, found \"3\""},
      {"NoNodes", Without(TrainJob(1), "PET_NNODES"),
       "PET_NNODES: expected the number of pods beside PET_NODE_RANK, found none"},
      {"Nodes", With(TrainJob(1), "PET_NNODES", "0"),
       "PET_NNODES: expected N or MIN:MAX within 1..100000, found \"0\""},
      {"NoPetMaster", Without(TrainJob(1), "PET_MASTER_ADDR"),
       "PET_MASTER_ADDR: expected the host of the first process beside PET_NODE_RANK, found none"},
      {"PetMasterPort", With(TrainJob(1), "PET_MASTER_PORT", "p"),
       "PET_MASTER_PORT: expected 1..65535, found \"p\""},
      {"NoElasticNodes", Without(Elastic(), "PET_NNODES"),
       "PET_NNODES: expected the number of pods beside PET_RDZV_ENDPOINT, found none"},
      {"Range", With(Elastic(), "PET_NNODES", "2:x"),
       "PET_NNODES: expected N or MIN:MAX within 1..100000, found \"2:x\""},
      {"Endpoint", With(Elastic(), "PET_RDZV_ENDPOINT", "mnist-worker-0"),
       "PET_RDZV_ENDPOINT: expected \"host:port\" (an IPv6 address in brackets), found "
       "\"mnist-worker-0\""},
      {"HostWithoutNumber", Elastic(),
       "the host's name: expected one that ends in a number 0..3, the rank beside "
       "PET_RDZV_ENDPOINT, found \"laptop\"",
       "laptop"},
      {"HostBeyondTheRange", Elastic(),
       "the host's name: expected one that ends in a number 0..3, the rank beside "
       "PET_RDZV_ENDPOINT, found \"mnist-worker-4\"",
       "mnist-worker-4"},
      {"EndpointOfNoPod", With(Elastic(), "PET_RDZV_ENDPOINT", "etcd:2379"),
       "PET_RDZV_ENDPOINT: expected the pod with the number 0, which leads (this one is "
       "mnist-worker-0), found \"etcd:2379\"",
       "mnist-worker-0"},
      {"EndpointOfAnotherPod", With(Elastic(), "PET_RDZV_ENDPOINT", "mnist-worker-1:1"),
       "PET_RDZV_ENDPOINT: expected the pod with the number 0, which leads (this one is "
       "mnist-worker-1), found \"mnist-worker-1:1\""},
      {"MpiRank", {{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}, "PMI_RANK: expected 0..3, found \"4\""},
      {"NoMpiPort",
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "node0"}},
       "MASTER_PORT: expected the port of the first process beside PMI_RANK, found none"},
      {"NoMpiSize",
       {{"OMPI_COMM_WORLD_RANK", "0"}},
       "OMPI_COMM_WORLD_SIZE: expected the number of processes beside OMPI_COMM_WORLD_RANK, found "
       "none"},
      {"PodsWithoutALeader",
       {{"PET_NNODES", "3"}, {"PET_NPROC_PER_NODE", "auto"}},
       "PET_NNODES: expected RANK, PET_NODE_RANK or PET_RDZV_ENDPOINT beside \"3\", to say which "
       "pod leads, found none of them (a PyTorchJob has them with a Master or an elasticPolicy)"},
  };
}
#undef KEELSON_ONE_WORKER

INSTANTIATE_TEST_SUITE_P(All, RankEnvironmentErrorTest, testing::ValuesIn(BadEnvironments()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RankEnvironmentTest, AWorkerBeyondTheWorldWasRemoved) {
  EXPECT_EQ(ParseRanks(PyTorchJob(3, 3)).status(),
            absl::UnavailableError(
                "RANK: expected 0..2, found \"3\": this worker was removed from the job"));
}

// --- The process ---

TEST(RankEnvironmentTest, ReadsTheVariablesOfTheProcess) {
  setenv("WORLD_SIZE", "7", 1);
  setenv("LOCAL_RANK", "0", 1);
  setenv("HOSTNAME", "mnist-worker-5", 1);
  RankEnvironment environment = RankEnvironment::OfProcess();
  EXPECT_THAT(environment.variables, testing::Contains(Pair("WORLD_SIZE", "7")));
  EXPECT_THAT(environment.variables, testing::Contains(Pair("LOCAL_RANK", "0")));
  EXPECT_THAT(environment.Names(), testing::Contains("WORLD_SIZE"));
  EXPECT_THAT(environment.Names(), Not(testing::Contains("LOCAL_RANK")));
  EXPECT_EQ(environment.host_name, "mnist-worker-5");
  for (const char* name : {"WORLD_SIZE", "LOCAL_RANK", "HOSTNAME"}) unsetenv(name);
  environment = RankEnvironment::OfProcess();
  EXPECT_FALSE(environment.variables.contains("WORLD_SIZE"));
  EXPECT_NE(environment.host_name, "mnist-worker-5");
}

}  // namespace
}  // namespace keelson
