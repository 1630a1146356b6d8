// Pushes count once: clients push to counting servers through links that break, while servers and
// clients die and come back. Whatever happens, each block ends at the arithmetic truth.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/grpc_parameter_client.h"
#include "core/cluster/membership_id.h"
#include "gtest/gtest.h"
#include "tests/support/counting_servers.h"
#include "tests/support/fault_proxy.h"

namespace keelson {
namespace {

constexpr int kServers = 2;
constexpr int kClients = 3;
constexpr absl::Duration kProgressLimit = absl::Seconds(60);

// Two messages for each server and step; "bias" is whole on one of them.
std::vector<VariableSpec> Variables() {
  return {{"weights", Shape({2200, 1000}), {}}, {"bias", Shape({1000}), {}}};
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

// A worker that does nothing but push -1 for every element, over links of its own or through
// memory.
class CountingClient {
 public:
  CountingClient(const CountingServers& servers, int index, int depth, const Scenario& scenario,
                 uint64_t seed)
      : membership_(RandomMembershipId()) {
    std::vector<std::string> addresses;
    for (int s = 0; s < servers.size(); ++s) {
      if (scenario.route == LocalRoute::kMemory) {
        addresses.push_back(absl::StrCat("127.0.0.1:", servers.port(s)));
        continue;
      }
      auto link = FaultProxy::Start(servers.port(s), seed * 1000 + static_cast<uint64_t>(s));
      EXPECT_TRUE(link.ok()) << link.status();
      links_.push_back(*std::move(link));
      addresses.push_back(links_.back()->address());
    }
    std::optional<OwnShards> own;
    if (scenario.own_shards && index < servers.size()) {
      const auto shard = static_cast<size_t>(index);
      own = OwnShards{addresses[shard], {{shard, servers.handler(index)}}};
    }
    ShardedParameterClient::Options options;
    options.self = {Role::kWorker, index};
    options.membership = membership_;
    options.member_epoch = servers.next_epoch();
    options.depth = depth;
    options.background = true;
    options.retry.first_pause = absl::Milliseconds(1);
    options.retry.longest_pause = absl::Milliseconds(20);
    options.call_timeout = absl::Seconds(5);
    auto client = ConnectParameterClient(options, servers.variables(), servers.placement(),
                                         ServersAt(addresses), Credentials(), Clock::Real(),
                                         &death_, {.local_route = scenario.route}, own);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~CountingClient() {
    if (thread_.joinable()) Die();
  }

  const MembershipId& membership() const { return membership_; }
  FaultProxy& link(int server) { return *links_[server]; }
  // Steps that all servers have acknowledged.
  int64_t acknowledged() const { return acknowledged_; }

  int64_t resets() const {
    int64_t resets = 0;
    for (const auto& link : links_) resets += link->resets();
    return resets;
  }

  // The server is reached over a new link from now on. What is under way on the one before may
  // arrive yet, unless that is cut.
  void Move(const CountingServers& servers, int server, bool cut, uint64_t seed) {
    auto link = FaultProxy::Start(servers.port(server), seed);
    ASSERT_TRUE(link.ok()) << link.status();
    if (cut) links_[server]->Set({.flow = LinkConditions::Flow::kPartition});
    std::swap(*link, links_[server]);
    left_links_.push_back(*std::move(link));
    std::vector<std::string> addresses;
    for (const auto& reached : links_) addresses.push_back(reached->address());
    client_->SetServers(ServersAt(addresses));
  }

  void SetLinks(const LinkConditions& conditions) {
    for (const auto& link : links_) link->Set(conditions);
  }

  void Start() {
    thread_ = std::thread([this] { status_ = Run(); });
  }
  // Lets the steps under way end.
  absl::Status Finish() {
    finishing_ = true;
    thread_.join();
    return status_;
  }
  // As kill -9, wherever it is: half a push may be with the servers.
  void Die() {
    SetLinks({.flow = LinkConditions::Flow::kPartition});
    for (const auto& link : links_) link->Reset();
    death_.Raise();
    thread_.join();
    client_ = nullptr;
  }

 private:
  absl::Status Run() {
    absl::Status status = client_->Pull();
    for (int64_t step = 0; status.ok() && !finishing_; ++step) {
      client_->Begin(step);
      for (size_t v = 0; v < client_->gradients().size(); ++v) {
        const absl::Span<float> gradient = client_->gradients()[v];
        std::fill(gradient.begin(), gradient.end(), -1);
        client_->Offer(v);
      }
      status = Count(client_->End());
    }
    return status.ok() ? Count(client_->Drain()) : status;
  }
  absl::Status Count(const absl::StatusOr<std::optional<PushResult>>& result) {
    if (result.ok() && result->has_value()) ++acknowledged_;
    return result.status();
  }

  const MembershipId membership_;
  StopSignal death_;
  std::vector<std::unique_ptr<FaultProxy>> links_;
  std::vector<std::unique_ptr<FaultProxy>> left_links_;
  std::unique_ptr<ParameterClient> client_;
  std::atomic<bool> finishing_{false};
  std::atomic<int64_t> acknowledged_{0};
  absl::Status status_;  // of Run, once the thread has ended
  std::thread thread_;
};

class ExactlyOnceTest : public testing::TestWithParam<Case> {
 protected:
  ExactlyOnceTest() : random_(GetParam().seed) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(GetParam().seed));
    for (int c = 0; c < kClients; ++c) clients_.push_back(NewClient(c));
  }

  // In [low, high].
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::unique_ptr<CountingClient> NewClient(int index) {
    auto client = std::make_unique<CountingClient>(servers_, index, GetParam().depth,
                                                   GetParam().scenario, random_());
    client->SetLinks(Conditions());
    // Sometimes a worker is faster than the announcement that it belongs to the job.
    const bool early = Draw(0, 1) == 0;
    if (early) client->Start();
    servers_.Join(index, client->membership());
    if (!early) client->Start();
    return client;
  }
  LinkConditions Conditions() const {
    LinkConditions conditions;
    if (GetParam().scenario.resets) conditions.mean_bytes_to_reset = 60'000'000;
    return conditions;
  }

  void WaitForMessages(int count) {
    const int64_t wanted = servers_.truth().messages() + count;
    ASSERT_TRUE(servers_.truth().WaitForMessages(wanted, kProgressLimit));
  }

  void BreakALink() {
    FaultProxy& link = clients_[Draw(0, kClients - 1)]->link(Draw(0, kServers - 1));
    if (Draw(0, 1) == 0) return link.Reset();
    // Others go on meanwhile.
    link.Set(
        {.flow = Draw(0, 1) == 0 ? LinkConditions::Flow::kHold : LinkConditions::Flow::kPartition});
    WaitForMessages(Draw(4, 12));
    link.Set(Conditions());
  }

  void KillAServer() {
    const int server = Draw(0, kServers - 1);
    if (GetParam().scenario.own_shards) return KillAProcess(server);
    servers_.Kill(server);
    servers_.Restore(server);
  }

  void KillAClient() {
    const int index = Draw(0, kClients - 1);
    if (GetParam().scenario.own_shards && index < kServers) return KillAProcess(index);
    BuryClient(index);
    clients_[index] = NewClient(index);
  }

  // With the server of this number and the client in its process.
  void KillAProcess(int index) {
    BuryClient(index);
    servers_.Kill(index);
    servers_.Restore(index);
    clients_[index] = NewClient(index);
  }

  void BuryClient(int index) {
    std::unique_ptr<CountingClient>& client = clients_[index];
    client->Die();
    // Sometimes the servers are told, sometimes they are not.
    if (Draw(0, 1) == 0) servers_.Leave(client->membership().incarnation);
    dead_.push_back(std::move(client));
  }

  void MoveAShard() {
    CountingClient& client = *clients_[Draw(0, kClients - 1)];
    const int server = Draw(0, kServers - 1);
    const bool cut = Draw(0, 1) == 0;
    client.Move(servers_, server, cut, random_());
    client.link(server).Set(Conditions());
  }

  void DoSomething() {
    const Scenario& scenario = GetParam().scenario;
    switch (Draw(0, scenario.moves ? 6 : 3)) {
      case 0:
        return servers_.TakeSnapshot();
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

  CountingServers servers_{Variables(), kServers};
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<CountingClient>> clients_;
  std::vector<std::unique_ptr<CountingClient>> dead_;
};

TEST_P(ExactlyOnceTest, EveryBlockEndsAtTheTruth) {
  const int depth = GetParam().depth;
  for (int event = 0; event < 16; ++event) {
    WaitForMessages(Draw(5, 40));
    if (HasFatalFailure()) return;
    DoSomething();
  }
  int64_t resets = 0;
  for (const auto& client : clients_) {
    client->SetLinks({});
    const absl::Status status = client->Finish();
    EXPECT_TRUE(status.ok()) << status;
    resets += client->resets();
  }
  servers_.ExpectTruth();

  int64_t steps = 0;
  const bool all_remembered = !GetParam().scenario.server_kills;
  for (const auto& client : clients_) {
    const auto [fewest, most] = servers_.truth().AcknowledgedOf(client->membership().incarnation);
    steps += client->acknowledged();
    EXPECT_LE(most, client->acknowledged());
    if (all_remembered) {
      EXPECT_EQ(fewest, client->acknowledged());
    }
  }
  for (const auto& client : dead_) {
    // What it had sent last is there or not, block by block.
    const auto [fewest, most] = servers_.truth().AcknowledgedOf(client->membership().incarnation);
    EXPECT_LE(most, client->acknowledged() + depth);
    if (all_remembered) {
      EXPECT_GE(fewest, client->acknowledged());
    }
  }
  std::printf("%lld steps of the clients that live, %lld messages, %lld resets, %zu dead clients\n",
              static_cast<long long>(steps), static_cast<long long>(servers_.truth().messages()),
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
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExactlyOnceTest, testing::ValuesIn(Cases()),
                         [](const auto& c) { return NameOf(c.param); });

}  // namespace
}  // namespace keelson
