// Pushes count once: clients push through links that break to what holds the shards, parameter
// servers or hosts with replicas, while these and the clients die and come back. Whatever happens,
// each block ends at the arithmetic truth.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/client/grpc_parameter_client.h"
#include "core/cluster/membership_id.h"
#include "gtest/gtest.h"
#include "tests/support/counting_cluster.h"
#include "tests/support/counting_hosts.h"
#include "tests/support/counting_servers.h"
#include "tests/support/fault_proxy.h"

namespace keelson {
namespace {

constexpr int kServers = 2;
constexpr int kHosts = 3;
constexpr int kClients = 3;
constexpr absl::Duration kProgressLimit = absl::Seconds(60);
// Of a link, where nobody can go on without it.
constexpr absl::Duration kLongestHold = absl::Milliseconds(300);
// How long clients do not know that a shard is elsewhere.
constexpr absl::Duration kNewsPause = absl::Milliseconds(20);

// Two messages for each shard and step; "bias" is whole on one of them.
std::vector<VariableSpec> Variables(int shards) {
  return {{"weights", Shape({1100 * shards, 1000}), {}}, {"bias", Shape({1000}), {}}};
}

struct Scenario {
  std::string name;
  bool resets = false;
  bool server_kills = false;
  bool client_kills = false;
  // kTcp: over FaultProxies.
  LocalRoute route = LocalRoute::kTcp;
  // Shards are reached at other addresses from time to time.
  bool moves = false;
  // Client c is in the process of server c, if there is one: it calls that directly, and dies with
  // it.
  bool own_shards = false;
  // Without parameter servers: synchronous steps over hosts with replicas, each of which has a
  // client.
  bool hosts = false;
};

struct Case {
  Scenario scenario;
  int depth;
  uint64_t seed;
};

std::string NameOf(const Case& c) {
  return absl::StrCat(c.scenario.name, "Depth", c.depth, "Seed", c.seed);
}

void PrintTo(const Case& c, std::ostream* out) { *out << NameOf(c); }

// A worker that does nothing but push the same for every element, over links of its own or through
// memory.
class CountingClient {
 public:
  CountingClient(CountingCluster* cluster, int index, int depth, const Scenario& scenario,
                 uint64_t seed)
      : cluster_(cluster), membership_(RandomMembershipId()), places_(cluster->Places()) {
    for (int p = 0; p < cluster->size(); ++p) {
      if (scenario.route == LocalRoute::kMemory) {
        addresses_.push_back(absl::StrCat("127.0.0.1:", cluster->port(p)));
        continue;
      }
      auto link = FaultProxy::Start(cluster->port(p), seed * 1000 + static_cast<uint64_t>(p));
      EXPECT_TRUE(link.ok()) << link.status();
      links_.push_back(*std::move(link));
      addresses_.push_back(links_.back()->address());
    }
    std::optional<OwnShards> own;
    if (scenario.own_shards && index < cluster->size()) {
      own = OwnShards{addresses_[index], cluster->Handlers(index)};
    }
    ShardedParameterClient::Options options;
    options.self = {Role::kWorker, index};
    options.membership = membership_;
    options.member_epoch = cluster->next_epoch();
    options.depth = depth;
    options.background = true;
    options.names_shards = scenario.hosts;
    options.retry.first_pause = absl::Milliseconds(1);
    options.retry.longest_pause = absl::Milliseconds(20);
    options.call_timeout = absl::Seconds(5);
    auto client = ConnectParameterClient(options, cluster->variables(), cluster->placement(),
                                         Servers(), Credentials(), Clock::Real(), &death_,
                                         {.local_route = scenario.route}, own);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~CountingClient() {
    if (thread_.joinable()) Die();
  }

  const MembershipId& membership() const { return membership_; }
  FaultProxy& link(int process) { return *links_[process]; }
  // Steps that all shards have acknowledged.
  int64_t acknowledged() const { return acknowledged_; }

  int64_t resets() const {
    int64_t resets = 0;
    for (const auto& link : links_) resets += link->resets();
    return resets;
  }

  // The process is reached over a new link from now on. What is under way on the one before may
  // arrive yet, unless that is cut.
  void Move(int process, bool cut, uint64_t seed) {
    auto link = FaultProxy::Start(cluster_->port(process), seed);
    ASSERT_TRUE(link.ok()) << link.status();
    if (cut) links_[process]->Set({.flow = LinkConditions::Flow::kPartition});
    std::swap(*link, links_[process]);
    left_links_.push_back(*std::move(link));
    addresses_[process] = links_[process]->address();
    client_->SetServers(Servers());
  }

  // Hears where the shards are.
  void HearNews() {
    std::vector<int> places = cluster_->Places();
    if (places == places_) return;
    places_ = std::move(places);
    client_->SetServers(Servers());
  }

  void SetLinks(const LinkConditions& conditions) {
    for (const auto& link : links_) link->Set(conditions);
  }

  void Start() {
    thread_ = std::thread([this] { status_ = Run(); });
  }
  // The cluster has finished.
  absl::Status Finish() {
    thread_.join();
    return status_;
  }
  // As kill -9, wherever it is: half a push may be with the servers.
  void Die() {
    SetLinks({.flow = LinkConditions::Flow::kPartition});
    for (const auto& link : links_) link->Reset();
    death_.Raise();
    cluster_->NoteDead(membership_.incarnation);
    thread_.join();
    client_ = nullptr;
  }

 private:
  // By shard.
  std::vector<BulkServer> Servers() const {
    std::vector<std::string> addresses;
    for (const int process : places_) addresses.push_back(addresses_[process]);
    return ServersAt(addresses);
  }

  absl::Status Run() {
    absl::Status status = client_->Pull();
    std::optional<CountedStep> step;
    while (status.ok() && (step = cluster_->NextStep(membership_.incarnation)).has_value()) {
      status = Do(*step);
    }
    return status.ok() ? Count(client_->Drain(), step) : status;
  }
  absl::Status Do(const CountedStep& step) {
    if (step.aggregation.has_value()) {
      RETURN_IF_ERROR(client_->PullFor(
          step.step, [&] { return cluster_->Holds(membership_.incarnation, step); }));
    }
    if (step.values.has_value()) CheckValues(step);
    client_->Begin(step.step, step.aggregation);
    for (size_t v = 0; v < client_->gradients().size(); ++v) {
      const absl::Span<float> gradient = client_->gradients()[v];
      std::fill(gradient.begin(), gradient.end(), step.gradient);
      client_->Offer(v);
    }
    RETURN_IF_ERROR(Count(client_->End(), step));
    if (step.aggregation.has_value()) client_->PullAhead(step.step + 1);
    return absl::OkStatus();
  }
  // The step's values are there until the last contribution to it is.
  void CheckValues(const CountedStep& step) const {
    int64_t wrong = 0;
    for (const absl::Span<float> values : client_->values()) {
      wrong += std::count_if(values.begin(), values.end(),
                             [&](float value) { return value != *step.values; });
    }
    if (!cluster_->Holds(membership_.incarnation, step)) return;
    EXPECT_EQ(wrong, 0) << "elements at step " << step.step << " that are not " << *step.values;
  }
  absl::Status Count(const absl::StatusOr<std::optional<PushResult>>& result,
                     const std::optional<CountedStep>& step) {
    if (!result.ok() || !result->has_value()) return result.status();
    ++acknowledged_;
    if (step.has_value()) cluster_->NoteEnd(membership_.incarnation, *step, **result);
    return absl::OkStatus();
  }

  CountingCluster* const cluster_;
  const MembershipId membership_;
  StopSignal death_;
  std::vector<std::unique_ptr<FaultProxy>> links_;  // by process
  std::vector<std::unique_ptr<FaultProxy>> left_links_;
  std::vector<std::string> addresses_;  // by process
  std::vector<int> places_;             // by shard, the process
  std::unique_ptr<ParameterClient> client_;
  std::atomic<int64_t> acknowledged_{0};
  absl::Status status_;  // of Run, once the thread has ended
  std::thread thread_;
};

class ExactlyOnceTest : public testing::TestWithParam<Case> {
 protected:
  ExactlyOnceTest() : random_(GetParam().seed) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(GetParam().seed));
    if (GetParam().scenario.hosts) {
      hosts_ = std::make_unique<CountingHosts>(Variables(kHosts), kHosts);
      cluster_ = hosts_.get();
    } else {
      servers_ = std::make_unique<CountingServers>(Variables(kServers), kServers);
      cluster_ = servers_.get();
    }
    for (int c = 0; c < kClients; ++c) clients_.push_back(NewClient(c));
  }

  // In [low, high].
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::unique_ptr<CountingClient> NewClient(int index) {
    auto client = std::make_unique<CountingClient>(cluster_, index, GetParam().depth,
                                                   GetParam().scenario, random_());
    client->SetLinks(Conditions());
    // Sometimes a worker is faster than the announcement that it belongs to the job.
    const bool early = Draw(0, 1) == 0;
    if (early) client->Start();
    cluster_->Join(index, client->membership());
    if (!early) client->Start();
    return client;
  }
  LinkConditions Conditions() const {
    LinkConditions conditions;
    if (GetParam().scenario.resets) conditions.mean_bytes_to_reset = 60'000'000;
    return conditions;
  }

  // Meanwhile the clients hear where the shards are.
  void WaitFor(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + kProgressLimit;
    while (!condition()) {
      ASSERT_LT(absl::Now(), deadline);
      const MessageCount& messages = cluster_->messages();
      messages.WaitFor(messages.total() + 1, kNewsPause);
      for (const auto& client : clients_) {
        if (client != nullptr) client->HearNews();
      }
    }
  }
  void WaitForMessages(int count) {
    const int64_t wanted = cluster_->messages().total() + count;
    WaitFor([&] { return cluster_->messages().total() >= wanted; });
  }

  void BreakALink() {
    if (Draw(0, 3) == 0) cluster_->ResetConnections();
    FaultProxy& link = clients_[Draw(0, kClients - 1)]->link(Draw(0, cluster_->size() - 1));
    if (Draw(0, 1) == 0) return link.Reset();
    // Others go on meanwhile, those of a synchronous step with what they have begun alone.
    link.Set(
        {.flow = Draw(0, 1) == 0 ? LinkConditions::Flow::kHold : LinkConditions::Flow::kPartition});
    const int64_t wanted = cluster_->messages().total() + Draw(4, 12);
    const bool waits = GetParam().scenario.hosts;
    cluster_->messages().WaitFor(wanted, waits ? kLongestHold : kProgressLimit);
    link.Set(Conditions());
  }

  void KillAServer() {
    const int process = Draw(0, cluster_->size() - 1);
    if (GetParam().scenario.own_shards) return KillAProcess(process);
    cluster_->Kill(process);
    cluster_->Restore(process);
  }

  void KillAClient() {
    const int index = Draw(0, kClients - 1);
    if (GetParam().scenario.own_shards && index < cluster_->size()) return KillAProcess(index);
    BuryClient(index);
    clients_[index] = NewClient(index);
  }

  // What holds the shard of this number, and the client in that process.
  void KillAProcess(int index) {
    WaitFor([this] { return cluster_->MayKill(); });
    if (HasFatalFailure()) return;
    BuryClient(index);
    cluster_->Kill(index);
    if (cluster_->GoesOnWithout() && Draw(0, 1) == 0) WaitForMessages(Draw(1, 40));
    cluster_->Restore(index);
    clients_[index] = NewClient(index);
  }

  void BuryClient(int index) {
    std::unique_ptr<CountingClient>& client = clients_[index];
    client->Die();
    // Sometimes the servers are told, sometimes they are not.
    if (Draw(0, 1) == 0) cluster_->Leave(client->membership().incarnation);
    dead_.push_back(std::move(client));
  }

  void MoveAShard() {
    CountingClient& client = *clients_[Draw(0, kClients - 1)];
    const int process = Draw(0, cluster_->size() - 1);
    const bool cut = Draw(0, 1) == 0;
    client.Move(process, cut, random_());
    client.link(process).Set(Conditions());
  }

  void DoSomething() {
    const Scenario& scenario = GetParam().scenario;
    switch (Draw(0, scenario.moves ? 6 : 3)) {
      case 0:
        return cluster_->TakeSnapshot();
      case 1:
        if (scenario.resets) BreakALink();
        return;
      case 2:
        if (scenario.server_kills) KillAServer();
        return;
      case 3:
        if (scenario.client_kills) KillAClient();
        return;
      default:
        MoveAShard();
    }
  }

  void EndAll() {
    for (const auto& client : clients_) client->SetLinks({});
    cluster_->Finish();
    WaitFor([this] { return cluster_->finished(); });
    for (const auto& client : clients_) {
      const absl::Status status = client->Finish();
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  void CheckAcknowledged(const CountingTruth& truth) const {
    const bool all_remembered = !GetParam().scenario.server_kills;
    for (const auto& client : clients_) {
      const auto [fewest, most] = truth.AcknowledgedOf(client->membership().incarnation);
      EXPECT_LE(most, client->acknowledged());
      if (all_remembered) {
        EXPECT_EQ(fewest, client->acknowledged());
      }
    }
    for (const auto& client : dead_) {
      // What it had sent last is there or not, block by block.
      const auto [fewest, most] = truth.AcknowledgedOf(client->membership().incarnation);
      EXPECT_LE(most, client->acknowledged() + GetParam().depth);
      if (all_remembered) {
        EXPECT_GE(fewest, client->acknowledged());
      }
    }
  }

  // Shards were served by their replicas, and went home again.
  void CheckMoves() const {
    if (!GetParam().scenario.server_kills) return;
    EXPECT_GT(hosts_->lost(), 0);
    EXPECT_GT(hosts_->went_home(), 0);
    std::printf("%lld steps, %lld attempts given up, %d shards lost their host, %d went home\n",
                static_cast<long long>(hosts_->rounds().committed()),
                static_cast<long long>(hosts_->rounds().given_up()), hosts_->lost(),
                hosts_->went_home());
  }

  // One of them.
  std::unique_ptr<CountingServers> servers_;
  std::unique_ptr<CountingHosts> hosts_;
  CountingCluster* cluster_ = nullptr;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<CountingClient>> clients_;
  std::vector<std::unique_ptr<CountingClient>> dead_;
};

TEST_P(ExactlyOnceTest, EveryBlockEndsAtTheTruth) {
  for (int event = 0; event < 16; ++event) {
    WaitForMessages(Draw(5, 40));
    if (HasFatalFailure()) return;
    DoSomething();
    if (HasFatalFailure()) return;
  }
  EndAll();
  if (HasFatalFailure()) return;
  cluster_->ExpectTruth();
  if (servers_ != nullptr) CheckAcknowledged(servers_->truth());
  if (hosts_ != nullptr) CheckMoves();
  int64_t steps = 0;
  int64_t resets = 0;
  for (const auto& client : clients_) {
    steps += client->acknowledged();
    resets += client->resets();
  }
  std::printf("%lld steps of the clients that live, %lld messages, %lld resets, %zu dead clients\n",
              static_cast<long long>(steps), static_cast<long long>(cluster_->messages().total()),
              static_cast<long long>(resets), dead_.size());
}

// Megabytes by the dozen are moved through the process three times.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const std::vector<Scenario> scenarios = {{"Resets", true, false, false},
                                           {"ServerKills", false, true, false},
                                           {"ClientKills", false, false, true},
                                           {"Everything", true, true, true}};
  for (const int depth : {1, 2}) {
    for (const uint64_t seed : {1, 2}) {
      if (kSlowBuild) continue;
      for (const Scenario& scenario : scenarios) cases.push_back({scenario, depth, seed});
    }
    cases.push_back({scenarios.back(), depth, 3});
    cases.push_back({{"KillsInMemory", false, true, true, LocalRoute::kMemory}, depth, 4});
    cases.push_back({{"Moves", false, true, false, LocalRoute::kTcp, true}, depth, 5});
    cases.push_back({{"OwnShards", true, true, true, LocalRoute::kTcp, false, true}, depth, 5});
    cases.push_back(
        {{"OwnShardsInMemory", false, true, true, LocalRoute::kMemory, false, true}, depth, 6});
    // The hosts' clients die with them.
    const auto hosts = [](const char* name, bool resets, LocalRoute route, bool moves) {
      return Scenario{name, resets, true, true, route, moves, true, true};
    };
    cases.push_back({hosts("HostKills", false, LocalRoute::kTcp, false), depth, 7});
    cases.push_back({hosts("HostKillsInMemory", false, LocalRoute::kMemory, false), depth, 8});
    cases.push_back({hosts("HostKillsAndResets", true, LocalRoute::kTcp, true), depth, 9});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExactlyOnceTest, testing::ValuesIn(Cases()),
                         [](const auto& c) { return NameOf(c.param); });

}  // namespace
}  // namespace keelson
