#include "core/cluster/cluster_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;

constexpr char kSparseChief[] =
    R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})";
constexpr char kDenseWorker[] =
    R"({"cluster":{"chief":["c:1"],"ps":["p:1","q:1"],"worker":["a:1","b:1"]},"task":{"type":"worker","index":1}})";

Task WorkerTask(int index) { return {Role::kWorker, index}; }
Task ServerTask(int index) { return {Role::kPs, index}; }

ClusterFlags AllHosts() {
  ClusterFlags flags;
  flags.chief_hosts = "c:1";
  flags.ps_hosts = "p:1,q:1";
  flags.worker_hosts = "a:1, b:1";
  return flags;
}

ClusterSpec Resolve(Role role, const ClusterFlags& flags,
                    std::optional<std::string> tf_config = std::nullopt) {
  const auto spec = ResolveCluster(role, flags, {std::move(tf_config), std::nullopt});
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ClusterSpec();
}

std::string Error(Role role, const ClusterFlags& flags,
                  std::optional<std::string> tf_config = std::nullopt) {
  const auto spec = ResolveCluster(role, flags, {std::move(tf_config), std::nullopt});
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

TEST(ClusterFlagsTest, FlagsAlone) {
  ClusterFlags flags = AllHosts();
  flags.job_name = "worker";
  flags.task_index = 1;
  const ClusterSpec spec = Resolve(Role::kWorker, flags);
  EXPECT_TRUE(spec.distributed);
  EXPECT_FALSE(spec.sparse);
  EXPECT_EQ(spec.self, (Task{Role::kWorker, 1}));
  EXPECT_THAT(spec.ps, ElementsAre(Pair(0, "p:1"), Pair(1, "q:1")));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("b:1")));
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("c:1")));
}

TEST(ClusterFlagsTest, ChiefAndEvaluatorNeedNoIndex) {
  EXPECT_EQ(Resolve(Role::kChief, AllHosts()).self, (Task{Role::kChief, 0}));
  EXPECT_EQ(Resolve(Role::kEvaluator, AllHosts()).self, (Task{Role::kEvaluator, 0}));
}

TEST(ClusterFlagsTest, WorkerZeroLeadsWithoutChiefHosts) {
  ClusterFlags flags = AllHosts();
  flags.chief_hosts.clear();
  flags.task_index = 0;
  EXPECT_TRUE(Resolve(Role::kWorker, flags).IsChief());
}

TEST(ClusterFlagsTest, WithoutWorkerHostsTheClusterIsSparse) {
  ClusterFlags flags;
  flags.ps_hosts = "p:1";
  flags.task_index = 7;
  const ClusterSpec spec = Resolve(Role::kWorker, flags);
  EXPECT_TRUE(spec.sparse);
  EXPECT_FALSE(spec.IsChief());
  EXPECT_EQ(spec.self, (Task{Role::kWorker, 7}));
}

TEST(ClusterFlagsTest, AServerNeedsNoMoreThanItsIndex) {
  ClusterFlags flags;
  flags.task_index = 1;
  flags.port = 4000;
  const ClusterSpec spec = Resolve(Role::kPs, flags);
  EXPECT_EQ(spec.self, (Task{Role::kPs, 1}));
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:4000");
}

TEST(ClusterFlagsTest, NothingMeansAloneForChiefAndEvaluatorOnly) {
  EXPECT_FALSE(Resolve(Role::kChief, {}).distributed);
  EXPECT_FALSE(Resolve(Role::kChief, {}, "").distributed);
  EXPECT_FALSE(Resolve(Role::kEvaluator, {}, "{}").distributed);
  EXPECT_EQ(Resolve(Role::kEvaluator, {}).self, (Task{Role::kEvaluator, 0}));
  EXPECT_THAT(Error(Role::kWorker, {}), HasSubstr("expected TF_CONFIG, RANK or --ps_hosts"));
  EXPECT_THAT(Error(Role::kWorker, {}), HasSubstr("for the worker"));
  EXPECT_THAT(Error(Role::kPs, {}), HasSubstr("expected TF_CONFIG or --ps_hosts"));
  EXPECT_THAT(Error(Role::kPs, {}), HasSubstr("for the ps"));
}

TEST(ClusterFlagsTest, TfConfigAlone) {
  const ClusterSpec spec = Resolve(Role::kWorker, {}, kDenseWorker);
  EXPECT_EQ(spec.self, (Task{Role::kWorker, 1}));
  EXPECT_EQ(spec.ps.size(), 2u);
}

TEST(ClusterFlagsTest, FlagsCompleteASparseTfConfig) {
  EXPECT_THAT(Error(Role::kChief, {}, kSparseChief), HasSubstr("--ps_hosts"));
  ClusterFlags flags;
  flags.ps_hosts = "p:1,q:1";
  const ClusterSpec spec = Resolve(Role::kChief, flags, kSparseChief);
  EXPECT_EQ(spec.ps.size(), 2u);
  EXPECT_TRUE(spec.sparse);
  EXPECT_EQ(spec.source, "TF_CONFIG and flags");
  EXPECT_EQ(Resolve(Role::kWorker, {}, kDenseWorker).source, "TF_CONFIG");
  flags.task_index = 7;
  EXPECT_EQ(Resolve(Role::kWorker, flags).source, "flags");
}

TEST(ClusterFlagsTest, ListingTheWorkersLetsWorkerZeroLeadASparseCluster) {
  const std::string tf_config =
      R"({"cluster":{"worker":{"0":"a:1"},"ps":["p:1"]},"task":{"type":"worker","index":0}})";
  EXPECT_FALSE(Resolve(Role::kWorker, {}, tf_config).IsChief());
  ClusterFlags flags;
  flags.worker_hosts = "a:1,b:1";
  EXPECT_TRUE(Resolve(Role::kWorker, flags, tf_config).IsChief());
}

TEST(ClusterFlagsTest, FlagsMayRepeatTfConfig) {
  ClusterFlags flags = AllHosts();
  flags.job_name = "worker";
  flags.task_index = 1;
  EXPECT_EQ(Resolve(Role::kWorker, flags, kDenseWorker).workers.size(), 2u);
}

TEST(ClusterFlagsTest, PortOverridesThePortListenedOn) {
  ClusterFlags flags = AllHosts();
  flags.port = 4000;
  const ClusterSpec spec = Resolve(Role::kChief, flags);
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:4000");
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("c:1")));
}

// --- Without servers ---

constexpr char kCollectiveChief[] =
    R"({"cluster":{"chief":["c:1"],"worker":["a:1","b:1"]},"task":{"type":"chief","index":0}})";

TEST(CollectiveClusterTest, WorkersWithoutServersAreListed) {
  ClusterFlags flags = AllHosts();
  flags.ps_hosts.clear();
  flags.task_index = 1;
  const ClusterSpec worker = Resolve(Role::kWorker, flags);
  EXPECT_TRUE(worker.collective());
  EXPECT_THAT(worker.ShardHosts(),
              ElementsAre(Task{Role::kChief, 0}, WorkerTask(0), WorkerTask(1)));
  flags.chief_hosts.clear();
  flags.task_index = 0;
  const ClusterSpec leader = Resolve(Role::kWorker, flags);
  EXPECT_TRUE(leader.IsChief());
  EXPECT_THAT(leader.ShardHosts(), ElementsAre(WorkerTask(0), WorkerTask(1)));
}

TEST(CollectiveClusterTest, TheWorkersProgramMayBeTheChief) {
  for (const char* job_name : {"", "chief", "master"}) {
    ClusterFlags flags;
    flags.job_name = job_name;
    const ClusterSpec spec = Resolve(Role::kWorker, flags, kCollectiveChief);
    EXPECT_EQ(spec.self, (Task{Role::kChief, 0}));
    EXPECT_TRUE(spec.IsChief());
    EXPECT_TRUE(spec.collective());
  }
  ClusterFlags flags = AllHosts();
  flags.ps_hosts.clear();
  flags.job_name = "chief";
  EXPECT_EQ(Resolve(Role::kWorker, flags).self, (Task{Role::kChief, 0}));
}

TEST(CollectiveClusterTest, WithServersTheWorkersProgramIsNoChief) {
  ClusterFlags flags = AllHosts();
  flags.job_name = "chief";
  EXPECT_EQ(Error(Role::kWorker, flags),
            "--job_name: expected \"worker\", the role of this program, found \"chief\"");
  flags = {};
  flags.ps_hosts = "p:1";
  EXPECT_EQ(Error(Role::kWorker, flags, kCollectiveChief),
            "TF_CONFIG: task.type: expected \"worker\", the role of this program, found \"chief\"");
}

TEST(CollectiveClusterTest, TheJobNameAgreesWithTfConfig) {
  ClusterFlags flags;
  flags.job_name = "worker";
  EXPECT_EQ(Error(Role::kWorker, flags, kCollectiveChief),
            "--job_name: found \"worker\", but TF_CONFIG task.type is \"chief\"");
}

// --- Numbered processes ---

ClusterEnvironment Ranked(const std::string& rank,
                          std::optional<std::string> tf_config = std::nullopt) {
  ClusterEnvironment environment;
  environment.tf_config = std::move(tf_config);
  environment.ranks.variables = {
      {"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}};
  return environment;
}

std::string RankedError(Role role, const ClusterFlags& flags, const std::string& rank) {
  const absl::Status status = ResolveCluster(role, flags, Ranked(rank)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(NumberedProcessTest, TheRankGivesTheCluster) {
  const auto worker = ResolveCluster(Role::kWorker, {}, Ranked("1"));
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->self, WorkerTask(0));
  EXPECT_TRUE(worker->peers_register());
  EXPECT_EQ(worker->ListenAddress(), "0.0.0.0:0");
  for (const Role program : {Role::kChief, Role::kWorker}) {
    EXPECT_EQ(ResolveCluster(program, {}, Ranked("0"))->self, (Task{Role::kChief, 0}));
  }
}

TEST(NumberedProcessTest, PeersThatAreListedDoNotRegister) {
  ClusterFlags flags;
  flags.worker_hosts = "m:1,n:1";
  flags.task_index = 1;
  const auto spec = ResolveCluster(Role::kWorker, flags, Ranked("1"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_FALSE(spec->peers_register());
  EXPECT_THAT(spec->ShardHosts(), ElementsAre(WorkerTask(0), WorkerTask(1)));
  EXPECT_THAT(spec->ChiefAddress(), Optional(Eq("m:1")));
}

TEST(NumberedProcessTest, AProcessThatRegistersMayNameItsHost) {
  ClusterFlags flags;
  EXPECT_EQ(ResolveCluster(Role::kWorker, flags, Ranked("1"))->announced_host, "");
  for (const char* host : {"node7", "10.0.0.7", "[fd00::7]"}) {
    flags.announce_host = host;
    EXPECT_EQ(ResolveCluster(Role::kWorker, flags, Ranked("1"))->announced_host, host);
  }
  EXPECT_EQ(RankedError(Role::kWorker, flags, "0"),
            "--announce_host: expected none, since the others know the leader's address, found "
            "\"[fd00::7]\"");
  flags.announce_host = "fd00::7";
  EXPECT_EQ(RankedError(Role::kWorker, flags, "1"),
            "--announce_host, with a port: expected \"host:port\" (an IPv6 address in brackets), "
            "found \"fd00::7:1\"");
  flags.worker_hosts = "m:1,n:1";
  flags.task_index = 1;
  EXPECT_EQ(RankedError(Role::kWorker, flags, "1"),
            "--announce_host: expected none, since the cluster gives this task's address, found "
            "\"fd00::7\"");
}

TEST(NumberedProcessTest, FlagsMayCompleteIt) {
  ClusterFlags flags;
  flags.chief_hosts = "c:7";
  flags.evaluator_hosts = "e:1";
  flags.port = 4000;
  flags.job_name = "worker";
  flags.task_index = 0;
  const auto spec = ResolveCluster(Role::kWorker, flags, Ranked("1"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->ChiefAddress(), Optional(Eq("c:7")));
  EXPECT_EQ(spec->evaluators.size(), 1u);
  EXPECT_EQ(spec->ListenAddress(), "0.0.0.0:4000");
}

TEST(NumberedProcessTest, WhereAddressesFollowThePortIsTheirs) {
  ClusterEnvironment environment = Ranked("1");
  environment.ranks.variables["MASTER_ADDR"] = "localhost";
  ClusterFlags flags;
  flags.port = 2;
  const auto spec = ResolveCluster(Role::kWorker, flags, environment);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->ListenAddress(), "localhost:2");
  flags.port = 3;
  EXPECT_EQ(ResolveCluster(Role::kWorker, flags, environment).status(),
            absl::InvalidArgumentError(
                "--port: expected none, or 2, since the others look for this task at localhost:2, "
                "which follows from the leader's address (--chief_hosts sets that), found 3"));
  flags.chief_hosts = "localhost:2";
  EXPECT_EQ(ResolveCluster(Role::kWorker, flags, environment)->ListenAddress(), "localhost:3");
}

TEST(NumberedProcessTest, FlagsAndTfConfigComeFirst) {
  ClusterFlags flags = AllHosts();
  flags.task_index = 1;
  auto spec = ResolveCluster(Role::kWorker, flags, Ranked("0"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->self, WorkerTask(1));
  EXPECT_THAT(spec->ToString(), HasSubstr(", from flags (RANK, WORLD_SIZE, MASTER_ADDR, "
                                          "MASTER_PORT are set too, and ignored), led by chief-0"));
  spec = ResolveCluster(Role::kWorker, {}, Ranked("0", kDenseWorker));
  EXPECT_EQ(spec->self, WorkerTask(1));
  EXPECT_THAT(spec->ToString(), HasSubstr(", from TF_CONFIG (RANK, "));
  flags = {};
  flags.ps_hosts = "p:1,q:1";
  EXPECT_EQ(ResolveCluster(Role::kWorker, flags, Ranked("0", kDenseWorker))->source,
            "TF_CONFIG and flags");
  flags.task_index = 5;
  spec = ResolveCluster(Role::kWorker, flags, Ranked("0"));
  EXPECT_EQ(spec->self, WorkerTask(5));
  EXPECT_FALSE(spec->peers_register());
  // A TF_CONFIG without a cluster does not count.
  EXPECT_EQ(ResolveCluster(Role::kWorker, {}, Ranked("1", "{}"))->source, "RANK and WORLD_SIZE");
}

TEST(NumberedProcessTest, ServersAndEvaluatorsAreNotNumbered) {
  const auto evaluator = ResolveCluster(Role::kEvaluator, {}, Ranked("1"));
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_FALSE(evaluator->distributed);
  EXPECT_THAT(evaluator->ToString(), HasSubstr("(RANK, WORLD_SIZE"));
  EXPECT_THAT(RankedError(Role::kPs, {}, "1"), HasSubstr("cluster: expected TF_CONFIG"));
  ClusterFlags flags;
  flags.task_index = 3;
  EXPECT_EQ(ResolveCluster(Role::kPs, flags, Ranked("x"))->self, ServerTask(3));
}

TEST(NumberedProcessTest, TheProgramChiefRunsRankZero) {
  EXPECT_EQ(RankedError(Role::kChief, {}, "1"),
            "RANK and WORLD_SIZE: expected rank 0, the only one that the program chief runs, found "
            "worker-0 (the program worker runs every rank)");
  ClusterEnvironment environment;
  environment.ranks.variables = {{"PET_NODE_RANK", "0"},
                                 {"PET_NNODES", "2"},
                                 {"PET_MASTER_ADDR", "m"},
                                 {"PET_MASTER_PORT", "1"}};
  EXPECT_EQ(ResolveCluster(Role::kChief, {}, environment)->self, WorkerTask(0));
  environment.ranks.variables["PET_MASTER_ADDR"] = "mnist-node-0-0";
  EXPECT_EQ(ResolveCluster(Role::kChief, {}, environment)->self, WorkerTask(0));
}

TEST(NumberedProcessTest, FlagsThatContradictTheRankAreNamed) {
  ClusterFlags flags;
  flags.task_index = 1;
  EXPECT_EQ(RankedError(Role::kWorker, flags, "1"),
            "--task_index: found 1, but RANK and WORLD_SIZE say worker-0");
  flags = {};
  flags.job_name = "chief";
  EXPECT_TRUE(ResolveCluster(Role::kWorker, flags, Ranked("0")).ok());
  EXPECT_EQ(RankedError(Role::kWorker, flags, "1"),
            "--job_name: found chief, but RANK and WORLD_SIZE say worker-0");
  flags = {};
  flags.chief_hosts = "a:1,b:1";
  EXPECT_EQ(RankedError(Role::kWorker, flags, "1"),
            "--chief_hosts: expected one address, found \"a:1,b:1\"");
  flags.chief_hosts = "a:1";
  flags.evaluator_hosts = "a:1";
  EXPECT_THAT(RankedError(Role::kWorker, flags, "1"), HasSubstr("expected an address of its own"));
  EXPECT_THAT(RankedError(Role::kWorker, {}, "two"), HasSubstr("RANK: expected 0..99999"));
}

// --- Patterns ---

TEST(ClusterFlagsPatternTest, ListEveryRole) {
  ClusterFlags flags;
  flags.ps_hosts = "j-ps-{0..2}.j:2222";
  flags.worker_hosts = "j-worker-{0..1}.j:2222,spot-{00..01}:2223";
  flags.chief_hosts = "j-chief-{0..0}.j:2222";
  flags.evaluator_hosts = "j-evaluator-{0..0}.j:2222";
  flags.task_index = 3;
  const ClusterSpec spec = Resolve(Role::kWorker, flags);
  EXPECT_THAT(spec.ps, ElementsAre(Pair(0, "j-ps-0.j:2222"), Pair(1, "j-ps-1.j:2222"),
                                   Pair(2, "j-ps-2.j:2222")));
  EXPECT_THAT(spec.workers, ElementsAre(Pair(0, "j-worker-0.j:2222"), Pair(1, "j-worker-1.j:2222"),
                                        Pair(2, "spot-00:2223"), Pair(3, "spot-01:2223")));
  EXPECT_THAT(spec.chief, ElementsAre(Pair(0, "j-chief-0.j:2222")));
  EXPECT_THAT(spec.evaluators, ElementsAre(Pair(0, "j-evaluator-0.j:2222")));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("spot-01:2223")));
}

TEST(ClusterFlagsPatternTest, ErrorsNameTheFlag) {
  ClusterFlags flags = AllHosts();
  flags.ps_hosts = "p-{0..}:1";
  EXPECT_THAT(Error(Role::kChief, flags), HasSubstr("--ps_hosts: expected {FIRST..LAST}"));
  flags = AllHosts();
  flags.worker_hosts = "w-{0..1:1";
  EXPECT_THAT(Error(Role::kChief, flags), HasSubstr("--worker_hosts: expected { and } in pairs"));
  flags = AllHosts();
  flags.ps_hosts = "p-{0..1}";
  EXPECT_THAT(Error(Role::kChief, flags), HasSubstr("--ps_hosts[0]: expected \"host:port\""));
  flags = AllHosts();
  flags.chief_hosts = "c-{0..1}:1";
  EXPECT_EQ(Error(Role::kChief, flags),
            "--chief_hosts: expected one address, found \"c-{0..1}:1\"");
}

// --- The index of an Indexed Job ---

absl::StatusOr<ClusterSpec> ResolveIndexed(Role role, const ClusterFlags& flags,
                                           const std::string& completion_index) {
  return ResolveCluster(role, flags, {std::nullopt, completion_index});
}

TEST(CompletionIndexTest, StandsInForTheFlag) {
  EXPECT_EQ(ResolveIndexed(Role::kWorker, AllHosts(), "1")->self, WorkerTask(1));
  EXPECT_EQ(ResolveIndexed(Role::kPs, AllHosts(), "1")->self, ServerTask(1));
  EXPECT_EQ(ResolveIndexed(Role::kPs, {}, "4")->self, ServerTask(4));
}

TEST(CompletionIndexTest, GivesWayToFlagAndTfConfig) {
  ClusterFlags flags = AllHosts();
  flags.task_index = 0;
  EXPECT_EQ(ResolveIndexed(Role::kWorker, flags, "1")->self, WorkerTask(0));
  EXPECT_EQ(ResolveIndexed(Role::kWorker, flags, "no index")->self, WorkerTask(0));
  const auto spec = ResolveCluster(Role::kWorker, {}, {kDenseWorker, "0"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->self, WorkerTask(1));
}

TEST(CompletionIndexTest, IsZeroForTheChief) {
  EXPECT_TRUE(ResolveIndexed(Role::kChief, AllHosts(), "0").ok());
  EXPECT_EQ(ResolveIndexed(Role::kChief, AllHosts(), "2").status().message(),
            "JOB_COMPLETION_INDEX: expected 0 for the chief, found 2");
  // Each pod runs a job of its own.
  EXPECT_TRUE(ResolveIndexed(Role::kChief, {}, "2").ok());
}

TEST(CompletionIndexTest, EvaluatorsThatAreNotListedMayBeMany) {
  EXPECT_EQ(ResolveIndexed(Role::kEvaluator, AllHosts(), "2")->self, (Task{Role::kEvaluator, 2}));
  EXPECT_TRUE(ResolveIndexed(Role::kEvaluator, {}, "2").ok());
}

TEST(CompletionIndexTest, ErrorsNameIt) {
  EXPECT_EQ(ResolveIndexed(Role::kWorker, AllHosts(), "2").status().message(),
            "JOB_COMPLETION_INDEX: expected 0..1, found 2");
  for (const std::string value : {"", "-1", "one", "1.5", "99999999999"}) {
    const absl::Status status = ResolveIndexed(Role::kWorker, AllHosts(), value).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(
        status.message(),
        absl::StrCat("JOB_COMPLETION_INDEX: expected an integer >= 0, found \"", value, "\""));
  }
}

// --- Dynamic workers: what the operator tells each role, completed by a pattern ---

ClusterFlags ServerPattern() {
  ClusterFlags flags;
  flags.ps_hosts = "j-ps-{0..1}.ns.svc:2222";
  return flags;
}

TEST(DynamicWorkersTest, ChiefAndEvaluatorLearnTheServersFromThePattern) {
  for (const Role role : {Role::kChief, Role::kEvaluator}) {
    const ClusterSpec spec =
        Resolve(role, ServerPattern(),
                absl::StrCat(R"({"cluster":{"worker":{},"ps":[]},"task":{"type":")", RoleName(role),
                             R"(","index":0}})"));
    EXPECT_EQ(spec.ps.size(), 2u);
    EXPECT_TRUE(spec.sparse);
    EXPECT_EQ(spec.self, (Task{role, 0}));
  }
}

TEST(DynamicWorkersTest, AServerStandsAtItsIndexInThePattern) {
  const std::string tf_config =
      R"({"cluster":{"worker":{},"ps":["j-ps-1.ns.svc:2222"]},"task":{"type":"ps","index":1}})";
  const ClusterSpec spec = Resolve(Role::kPs, ServerPattern(), tf_config);
  EXPECT_EQ(spec.self, ServerTask(1));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("j-ps-1.ns.svc:2222")));
  ClusterFlags other = ServerPattern();
  other.ps_hosts = "k-ps-{0..1}.ns.svc:2222";
  EXPECT_EQ(Error(Role::kPs, other, tf_config),
            "--ps_hosts: found \"k-ps-1.ns.svc:2222\" for task 1, but TF_CONFIG has "
            "\"j-ps-1.ns.svc:2222\"");
}

TEST(DynamicWorkersTest, AWorkerMayBeGivenThePatternToo) {
  const ClusterSpec spec = Resolve(
      Role::kWorker, ServerPattern(),
      R"({"cluster":{"worker":{"7":"j-worker-7.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":7}})");
  EXPECT_EQ(spec.self, WorkerTask(7));
  EXPECT_EQ(spec.ps.size(), 2u);
  EXPECT_TRUE(spec.sparse);
}

TEST(ClusterFlagsErrorTest, ConflictsWithTfConfigNameBothValues) {
  ClusterFlags flags;
  flags.ps_hosts = "p:1,x:1";
  EXPECT_EQ(Error(Role::kWorker, flags, kDenseWorker),
            "--ps_hosts: found \"x:1\" for task 1, but TF_CONFIG has \"q:1\"");
  flags.ps_hosts = "p:1";
  EXPECT_EQ(Error(Role::kWorker, flags, kDenseWorker),
            "--ps_hosts: found no address for task 1, but TF_CONFIG has \"q:1\"");
  flags.ps_hosts = "p:1,q:1,r:1";
  EXPECT_EQ(Error(Role::kWorker, flags, kDenseWorker),
            "--ps_hosts: found 3 addresses, but TF_CONFIG has 2");
  flags = {};
  flags.task_index = 0;
  EXPECT_EQ(Error(Role::kWorker, flags, kDenseWorker),
            "--task_index: found 0, but TF_CONFIG task.index is 1");
}

TEST(ClusterFlagsErrorTest, JobName) {
  ClusterFlags flags = AllHosts();
  flags.job_name = "gpu";
  EXPECT_EQ(Error(Role::kChief, flags),
            "--job_name: expected chief, master, ps, worker or evaluator, found \"gpu\"");
  flags.job_name = "ps";
  EXPECT_EQ(Error(Role::kWorker, flags),
            "--job_name: expected \"worker\", the role of this program, found \"ps\"");
  flags.job_name = "master";
  EXPECT_TRUE(ResolveCluster(Role::kChief, flags, {}).ok());
}

TEST(ClusterFlagsErrorTest, TaskIndex) {
  ClusterFlags flags = AllHosts();
  EXPECT_EQ(Error(Role::kWorker, flags),
            "--task_index: expected >= 0 (or JOB_COMPLETION_INDEX), found none");
  flags.task_index = 5;
  EXPECT_EQ(Error(Role::kWorker, flags), "--task_index: expected 0..1, found 5");
  EXPECT_EQ(Resolve(Role::kEvaluator, flags).self, (Task{Role::kEvaluator, 5}));
  flags.evaluator_hosts = "e:1,f:1";
  EXPECT_EQ(Error(Role::kEvaluator, flags), "--task_index: expected 0..1, found 5");
  flags.task_index = -2;
  EXPECT_EQ(Error(Role::kWorker, flags), "--task_index: expected >= 0, found -2");
}

TEST(ClusterFlagsErrorTest, Hosts) {
  ClusterFlags flags = AllHosts();
  flags.ps_hosts = "p:1,,q:1";
  EXPECT_THAT(Error(Role::kChief, flags), HasSubstr("--ps_hosts[1]: expected \"host:port\""));
  flags = AllHosts();
  flags.chief_hosts = "c:1,d:1";
  EXPECT_EQ(Error(Role::kChief, flags), "--chief_hosts: expected one address, found \"c:1,d:1\"");
  flags = AllHosts();
  flags.chief_hosts.clear();
  EXPECT_EQ(Error(Role::kChief, flags),
            "--chief_hosts: expected the address of chief-0, found none");
  flags = AllHosts();
  flags.ps_hosts.clear();
  flags.worker_hosts.clear();
  EXPECT_THAT(Error(Role::kChief, flags), HasSubstr("cluster: ps: expected at least one address"));
}

TEST(ClusterFlagsErrorTest, SparseIndexOutsideTheHostsOfTheFlag) {
  ClusterFlags flags;
  flags.worker_hosts = "a:1,b:1";
  EXPECT_EQ(Error(Role::kWorker, flags,
                  R"({"cluster":{"worker":{},"ps":["p:1"]},"task":{"type":"worker","index":5}})"),
            "TF_CONFIG: task.index: expected 0..1, found 5");
}

TEST(ClusterFlagsErrorTest, Port) {
  ClusterFlags flags = AllHosts();
  flags.port = 70000;
  EXPECT_EQ(Error(Role::kChief, flags), "--port: expected 1..65535, found 70000");
}

}  // namespace
}  // namespace keelson
