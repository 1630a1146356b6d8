#include "core/cluster/tf_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::StartsWith;

ClusterSpec Parse(absl::string_view json, std::optional<Role> role = std::nullopt) {
  const auto spec = ParseTfConfig(json, role);
  EXPECT_TRUE(spec.ok()) << spec.status() << "\n" << json;
  return spec.ok() ? *spec : ClusterSpec();
}

// --- What operators write, byte for byte ---

TEST(TfConfigGoldenTest, DenseWithEvaluator) {
  constexpr absl::string_view kJson =
      R"({"cluster":{"evaluator":["j-evaluator-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"})";
  const ClusterSpec spec = Parse(kJson, Role::kWorker);
  EXPECT_TRUE(spec.distributed);
  EXPECT_FALSE(spec.sparse);
  EXPECT_EQ(spec.self, (Task{Role::kWorker, 0}));
  EXPECT_THAT(spec.chief, IsEmpty());
  EXPECT_THAT(spec.ps, ElementsAre(Pair(0, "j-ps-0.ns3.svc:2222")));
  EXPECT_THAT(spec.workers, ElementsAre(Pair(0, "j-worker-0.ns3.svc:2222")));
  EXPECT_THAT(spec.evaluators, ElementsAre(Pair(0, "j-evaluator-0.ns3.svc:2222")));
  EXPECT_TRUE(spec.IsChief());
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("j-worker-0.ns3.svc:2222")));
}

TEST(TfConfigGoldenTest, DenseWithEvaluatorAsTheEvaluator) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"],"evaluator":["j-evaluator-0.ns.svc:2222"],"ps":["j-ps-0.ns.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"})",
      Role::kEvaluator);
  EXPECT_EQ(spec.self, (Task{Role::kEvaluator, 0}));
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("j-chief-0.ns.svc:2222")));
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("j-evaluator-0.ns.svc:2222")));
}

TEST(TfConfigTest, SeveralEvaluatorsListedOrNot) {
  const ClusterSpec listed = Parse(
      R"({"cluster":{"chief":["c:1"],"evaluator":["e:1","f:1"],"ps":["p:1"]},"task":{"type":"evaluator","index":1}})",
      Role::kEvaluator);
  EXPECT_EQ(listed.self, (Task{Role::kEvaluator, 1}));
  EXPECT_THAT(listed.SelfAddress(), Optional(Eq("f:1")));
  const ClusterSpec unlisted = Parse(
      R"({"cluster":{"chief":["c:1"],"ps":["p:1"],"worker":["w:1"]},"task":{"type":"evaluator","index":3}})",
      Role::kEvaluator);
  EXPECT_EQ(unlisted.self, (Task{Role::kEvaluator, 3}));
}

TEST(TfConfigGoldenTest, DenseWithoutEvaluatorAsTheEvaluator) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"],"ps":["j-ps-0.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"})",
      Role::kEvaluator);
  EXPECT_EQ(spec.self, (Task{Role::kEvaluator, 0}));
  EXPECT_EQ(spec.SelfAddress(), std::nullopt);
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2222");
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("j-chief-0.ns.svc:2222")));
}

TEST(TfConfigGoldenTest, Chief) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"],"ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222","j-worker-1.ns.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"})",
      Role::kWorker);
  EXPECT_EQ(spec.self, (Task{Role::kWorker, 1}));
  EXPECT_EQ(spec.ps.size(), 2u);
  EXPECT_EQ(spec.workers.size(), 2u);
  EXPECT_FALSE(spec.chief_is_worker());
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("j-worker-1.ns.svc:2222")));
}

TEST(TfConfigGoldenTest, MasterIsTheChief) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"master":["j-master-0.ns.svc:2222"],"ps":["j-ps-0.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222"]},"task":{"type":"master","index":0},"environment":"cloud"})",
      Role::kChief);
  EXPECT_EQ(spec.self, (Task{Role::kChief, 0}));
  EXPECT_TRUE(spec.IsChief());
  EXPECT_THAT(spec.ChiefAddress(), Optional(Eq("j-master-0.ns.svc:2222")));
}

TEST(TfConfigGoldenTest, CustomPortAndDomain) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["j-chief-0.ns.svc.cluster.local:22223"],"ps":["j-ps-0.ns.svc.cluster.local:22221"],"worker":["j-worker-0.ns.svc.cluster.local:22222"]},"task":{"type":"ps","index":0},"environment":"cloud"})",
      Role::kPs);
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("j-ps-0.ns.svc.cluster.local:22221")));
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:22221");
}

TEST(TfConfigGoldenTest, SparseWorker) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":1}})",
      Role::kWorker);
  EXPECT_TRUE(spec.sparse);
  EXPECT_THAT(spec.workers, ElementsAre(Pair(1, "j-worker-1.ns.svc:2222")));
  EXPECT_EQ(spec.ps.size(), 2u);
  EXPECT_EQ(spec.ChiefAddress(), std::nullopt);
  EXPECT_TRUE(spec.Validate().ok());
}

TEST(TfConfigGoldenTest, SparseServerKnowsOnlyItselfAtListPositionZero) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"worker":{},"ps":["j-ps-1.ns.svc:2345"]},"task":{"type":"ps","index":1}})",
      Role::kPs);
  EXPECT_EQ(spec.self, (Task{Role::kPs, 1}));
  EXPECT_THAT(spec.ps, ElementsAre(Pair(1, "j-ps-1.ns.svc:2345")));
  EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2345");
  EXPECT_TRUE(spec.Validate().ok());
}

TEST(TfConfigGoldenTest, SparseChiefKnowsNobody) {
  const ClusterSpec spec =
      Parse(R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})", Role::kChief);
  EXPECT_TRUE(spec.distributed);
  EXPECT_TRUE(spec.sparse);
  EXPECT_TRUE(spec.IsChief());
  EXPECT_EQ(spec.ps.size(), 0u);
  EXPECT_FALSE(spec.Validate().ok());
}

TEST(TfConfigGoldenTest, SparseWorkerOfAJobWithoutServers) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"worker":{"0":"j-worker-0.ns.svc:2222"},"ps":null},"task":{"type":"worker","index":0}})",
      Role::kWorker);
  EXPECT_THAT(spec.ps, IsEmpty());
  EXPECT_FALSE(spec.Validate().ok());
}

constexpr absl::string_view kMwmsChief =
    R"({"cluster":{"chief":["mnist-mwms-training-8c00-chief-0.training.svc:2222"],"worker":["mnist-mwms-training-8c00-worker-0.training.svc:2222","mnist-mwms-training-8c00-worker-1.training.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"})";

// One command serves chief and workers of MultiWorkerMirroredStrategy.
TEST(TfConfigGoldenTest, ChiefAndWorkersWithoutServers) {
  for (const Role program : {Role::kChief, Role::kWorker}) {
    const ClusterSpec spec = Parse(kMwmsChief, program);
    EXPECT_TRUE(spec.Validate().ok());
    EXPECT_TRUE(spec.collective());
    EXPECT_TRUE(spec.IsChief());
    EXPECT_EQ(spec.self, (Task{Role::kChief, 0}));
    EXPECT_EQ(spec.ListenAddress(), "0.0.0.0:2222");
    EXPECT_THAT(spec.ShardHosts(),
                ElementsAre(Task{Role::kChief, 0}, Task{Role::kWorker, 0}, Task{Role::kWorker, 1}));
  }
}

TEST(TfConfigGoldenTest, WorkersWithoutServersAndChief) {
  const ClusterSpec spec = Parse(
      R"({"cluster": {"worker": ["10.10.10.2:12346", "10.10.10.3:12346"]}, "task": {"index": 0, "type": "worker"}})",
      Role::kWorker);
  EXPECT_TRUE(spec.Validate().ok());
  EXPECT_TRUE(spec.collective());
  EXPECT_TRUE(spec.IsChief());
  EXPECT_EQ(spec.ListenAddress(), "10.10.10.2:12346");
  EXPECT_THAT(spec.ShardHosts(), ElementsAre(Task{Role::kWorker, 0}, Task{Role::kWorker, 1}));
}

TEST(TfConfigGoldenTest, SparseClusterKey) {
  const ClusterSpec spec = Parse(
      R"({"sparseCluster":{"worker":{"2":"j-worker-2.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222"]},"task":{"type":"worker","index":2}})",
      Role::kWorker);
  EXPECT_TRUE(spec.sparse);
  EXPECT_THAT(spec.SelfAddress(), Optional(Eq("j-worker-2.ns.svc:2222")));
}

// --- Other accepted shapes ---

TEST(TfConfigTest, EmptyOrWithoutClusterIsNotDistributed) {
  for (const char* json :
       {"", " \n", "{}", R"({"environment":"cloud"})", R"({"cluster":{}})",
        R"({"cluster":null,"task":null})", R"({"task":{"type":"chief","index":0}})"}) {
    const ClusterSpec spec = Parse(json, Role::kChief);
    EXPECT_FALSE(spec.distributed) << json;
    EXPECT_EQ(spec.self, (Task{Role::kChief, 0})) << json;
  }
}

TEST(TfConfigTest, TaskTypeInAnyCaseAndIndexAsString) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["c:1"],"worker":["a:1","b:1"]},"task":{"type":"Worker","index":"1"}})",
      Role::kWorker);
  EXPECT_EQ(spec.self, (Task{Role::kWorker, 1}));
}

TEST(TfConfigTest, IgnoresUnknownKeysAndJobs) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["c:1"],"ps":["p:1"],"gpu":7},"task":{"type":"ps","index":0,"x":[]},"session_master":"x","service":{},"rpc_layer":"grpc"})",
      Role::kPs);
  EXPECT_EQ(spec.ps.size(), 1u);
}

TEST(TfConfigTest, MapsMayStandForEveryJob) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":{"0":"c:1"},"ps":{"0":"p:1","1":"q:1"},"worker":{"3":"w:1"}},"task":{"type":"ps","index":1}})",
      Role::kPs);
  EXPECT_TRUE(spec.sparse);
  EXPECT_THAT(spec.ps, ElementsAre(Pair(0, "p:1"), Pair(1, "q:1")));
  EXPECT_THAT(spec.workers, ElementsAre(Pair(3, "w:1")));
}

TEST(TfConfigTest, BracketedIpv6) {
  const ClusterSpec spec = Parse(
      R"({"cluster":{"chief":["[::1]:5"],"ps":["[::1]:6"]},"task":{"type":"chief","index":0}})");
  EXPECT_EQ(spec.ListenAddress(), "[::1]:5");
}

// --- Errors: the text has the key and the value, the exit code is 2 ---

struct BadConfig {
  const char* name;
  const char* json;
  const char* text;
  Role role = Role::kWorker;
};

class TfConfigErrorTest : public testing::TestWithParam<BadConfig> {};

TEST_P(TfConfigErrorTest, IsNamed) {
  const auto spec = ParseTfConfig(GetParam().json, GetParam().role);
  ASSERT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << spec.status();
  EXPECT_THAT(std::string(spec.status().message()), StartsWith("TF_CONFIG: "));
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr(GetParam().text));
  EXPECT_EQ(ExitCodeFor(spec.status()), kExitPermanent);
}

#define KEELSON_CLUSTER R"("cluster":{"chief":["c:1"],"ps":["p:1","q:1"],"worker":["a:1","b:1"]})"

const BadConfig kBadConfigs[] = {
    {"Syntax", R"({"cluster":{"ps":[}})",
     "not valid JSON at byte 19: syntax error while parsing value - unexpected '}'"},
    {"Truncated", R"({"cluster":)", "not valid JSON at byte 12"},
    {"NotAnObject", R"(["cluster"])", R"(expected a JSON object, found ["cluster"])"},
    {"ServiceType", "{" KEELSON_CLUSTER R"(,"service":"x"})",
     R"(service: expected an object, found "x")"},
    {"ClusterType", R"({"cluster":["a:1"]})", R"(cluster: expected an object, found ["a:1"])"},
    {"TwoClusters", R"({"cluster":{"ps":["p:1"]},"sparseCluster":{"ps":["p:1"]}})",
     "expected one of cluster and sparseCluster, found both"},
    {"JobType", R"({"cluster":{"ps":"p:1"}})",
     R"(cluster.ps: expected a list or a map of addresses, found "p:1")"},
    {"AddressType", R"({"cluster":{"ps":["p:1",7]}})",
     R"(cluster.ps[1]: expected "host:port", found 7)"},
    {"Address", R"({"cluster":{"worker":{"4":"host"}}})",
     R"(cluster.worker[4]: expected "host:port" (an IPv6 address in brackets), found "host")"},
    {"Port", R"({"cluster":{"chief":["h:70000"]}})",
     R"(cluster.chief[0]: expected a port in 1..65535, found "h:70000")"},
    {"MapKey", R"({"cluster":{"worker":{"x":"a:1"}}})",
     R"(cluster.worker: expected a task index >= 0 as key, found "x")"},
    {"NegativeMapKey", R"({"cluster":{"worker":{"-1":"a:1"}}})",
     R"(cluster.worker: expected a task index >= 0 as key, found "-1")"},
    {"MasterBesideChief",
     R"({"cluster":{"chief":["c:1"],"master":["m:1"]},"task":{"type":"chief","index":0}})",
     R"(cluster.master: expected no master in a cluster that has a chief, found ["m:1"] beside ["c:1"])"},
    {"EvaluatorWithMaster",
     R"({"cluster":{"master":["m:1"],"ps":["p:1"]},"task":{"type":"evaluator","index":0}})",
     R"(task.type: expected no evaluator in a cluster with a master)", Role::kEvaluator},
    {"NoLeader", R"({"cluster":{"ps":["p:1"]},"task":{"type":"ps","index":0}})",
     R"(cluster: expected a chief or a worker to lead the job, found {"ps":["p:1"]})", Role::kPs},
    {"TwoChiefs", R"({"cluster":{"chief":["c:1","d:1"]},"task":{"type":"chief","index":0}})",
     "cluster.chief: expected one task, found [\"c:1\",\"d:1\"]", Role::kChief},
    {"TwoMasters", R"({"cluster":{"master":["c:1","d:1"]},"task":{"type":"chief","index":0}})",
     "cluster.master: expected one task, found [\"c:1\",\"d:1\"]", Role::kChief},
    {"NoTask", "{" KEELSON_CLUSTER "}",
     "task.type: expected the type of this task (a cluster is given), found none"},
    {"NoTaskType", "{" KEELSON_CLUSTER R"(,"task":{"index":0}})",
     "task.type: expected the type of this task (a cluster is given), found none"},
    {"TaskType", "{" KEELSON_CLUSTER R"(,"task":[1]})", "task: expected an object, found [1]"},
    {"TypeType", "{" KEELSON_CLUSTER R"(,"task":{"type":3,"index":0}})",
     "task.type: expected chief, master, ps, worker or evaluator, found 3"},
    {"UnknownType", "{" KEELSON_CLUSTER R"(,"task":{"type":"gpu","index":0}})",
     R"(task.type: expected chief, master, ps, worker or evaluator, found "gpu")"},
    {"OtherProgram", "{" KEELSON_CLUSTER R"(,"task":{"type":"ps","index":0}})",
     R"(task.type: expected "worker", the role of this program, found "ps")"},
    {"ChiefBesideServers", "{" KEELSON_CLUSTER R"(,"task":{"type":"chief","index":0}})",
     R"(task.type: expected "worker", the role of this program, found "chief")"},
    {"ChiefOfASparseCluster",
     R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})",
     R"(task.type: expected "worker", the role of this program, found "chief")"},
    {"ChiefWithoutCluster", R"({"task":{"type":"chief","index":0}})",
     R"(task.type: expected "worker", the role of this program, found "chief")"},
    {"WorkerOfACollectiveClusterForTheChief",
     R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":0}})",
     R"(task.type: expected "chief", the role of this program, found "worker")", Role::kChief},
    {"NoIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"worker"}})",
     "task.index: expected the index of this task (a cluster is given), found none"},
    {"NullIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"worker","index":null}})",
     "task.index: expected the index of this task (a cluster is given), found none"},
    {"NegativeIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"worker","index":-1}})",
     "task.index: expected >= 0, found -1"},
    {"FractionalIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"worker","index":0.5}})",
     "task.index: expected an integer, found 0.5"},
    {"TextIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"worker","index":"one"}})",
     R"(task.index: expected an integer, found "one")"},
    {"HugeIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"worker","index":99999999999}})",
     "task.index: expected an integer, found 99999999999"},
    {"IndexOutside", "{" KEELSON_CLUSTER R"(,"task":{"type":"ps","index":5}})",
     "task.index: expected 0..1, found 5", Role::kPs},
    {"ChiefIndex", "{" KEELSON_CLUSTER R"(,"task":{"type":"chief","index":1}})",
     "task.index: expected 0 for the chief, found 1", Role::kChief},
    {"EvaluatorIndex",
     R"({"cluster":{"chief":["c:1"],"evaluator":["e:1"],"ps":["p:1"]},"task":{"type":"evaluator","index":1}})",
     "task.index: expected 0, found 1", Role::kEvaluator},
    {"SparseIndexOutside",
     R"({"cluster":{"worker":{"1":"a:1","4":"b:1"}},"task":{"type":"worker","index":2}})",
     "task.index: expected 1, 4, found 2"},
    {"LargestSparseIndex",
     R"({"cluster":{"worker":{"2147483647":"a:1"}},"task":{"type":"worker","index":2}})",
     "task.index: expected 2147483647, found 2"},
    {"NotInCluster", R"({"cluster":{"worker":["a:1"]},"task":{"type":"ps","index":0}})",
     R"(task.type: expected a job of the cluster, found "ps" with the cluster {"worker":["a:1"]})",
     Role::kPs},
    {"ServerWithoutCluster", R"({"task":{"type":"ps","index":0}})",
     R"(task.type: expected chief, worker or evaluator when there is no cluster, found "ps")",
     Role::kPs},
    {"IndexWithoutCluster", R"({"task":{"type":"worker","index":1}})",
     "task.index: expected 0 when there is no cluster, found 1"},
};
#undef KEELSON_CLUSTER

INSTANTIATE_TEST_SUITE_P(All, TfConfigErrorTest, testing::ValuesIn(kBadConfigs),
                         [](const auto& info) { return std::string(info.param.name); });

// A message with such a value would be made by as many nested calls.
TEST(TfConfigTest, AWorkerBeyondTheListWasRemoved) {
  const absl::Status status =
      ParseTfConfig(
          R"({"cluster":{"ps":["p:1"],"worker":["a:1"]},"task":{"type":"worker","index":1}})",
          Role::kWorker)
          .status();
  EXPECT_EQ(status,
            absl::UnavailableError("TF_CONFIG: task.index: expected 0, found 1: this worker "
                                   "was removed from the job"));
}

TEST(TfConfigTest, DeepValuesAreRefused) {
  const std::string deep = absl::StrCat(std::string(1000000, '['), std::string(1000000, ']'));
  for (const char* key : {"cluster", "task", "service", "other"}) {
    EXPECT_EQ(ParseTfConfig(absl::StrCat("{\"", key, "\":", deep, "}"), std::nullopt).status(),
              absl::InvalidArgumentError(
                  "TF_CONFIG: expected values within at most 32 others, found more"));
  }
  const std::string deepest = absl::StrCat(std::string(31, '['), std::string(31, ']'));
  EXPECT_TRUE(ParseTfConfig(absl::StrCat("{\"other\":", deepest, "}"), std::nullopt).ok());
}

TEST(TfConfigTest, LongValuesAreShortenedInMessages) {
  const auto spec = ParseTfConfig(absl::StrCat("[\"", std::string(5000, 'x'), "\"]"), std::nullopt);
  EXPECT_LT(spec.status().message().size(), 200);
}

}  // namespace
}  // namespace keelson
