// What a chief tells a server, and which chief it obeys.
#include <atomic>
#include <cstring>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/shard_state.h"
#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ChiefHeartbeatTest : public testing::Test {
 protected:
  absl::Status Initialize(const v1::InitializeShardRequest& request) {
    v1::InitializeShardResponse response;
    return server_.handler.Initialize(request, &response);
  }
  void Initialize() { ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok()); }
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request) {
    status_.Clear();
    return server_.handler.ChiefHeartbeat(request, &status_);
  }
  absl::Status Call(BulkMethod method, const TestRequest& request) {
    return CallBulk(&server_.handler, method, request).status();
  }
  absl::Status Push(uint64_t incarnation, uint64_t sequence) {
    return Call(BulkMethod::kPush, ConstantPushOf(placement_, 0, incarnation, sequence, 1));
  }
  float Value() {
    const auto response = CallBulk(&server_.handler, BulkMethod::kPull, PullOf(placement_, 0));
    Arrays arrays;
    if (response.ok()) Receive(placement_, *response, &arrays);
    return arrays["scale"].at(0);
  }
  // Writes the snapshot of step 0 and returns its prefix.
  std::string Snapshot() { return WriteBundle({&server_.handler}, server_.model_dir, 0); }
  // The incarnations that each block has applied something of.
  std::vector<std::vector<uint64_t>> Applied() {
    const auto bundle = BundleReader::Open(Snapshot());
    const auto bytes = (*bundle)->ReadString(ShardStateName(0, 1));
    v1::ShardState state;
    EXPECT_TRUE(bytes.ok() && state.ParseFromString(*bytes));
    std::vector<std::vector<uint64_t>> applied;
    for (int b = 0; b < state.blocks_size(); ++b) {
      applied.emplace_back();
      for (const auto& entry : AppliedBy(state, b)) applied.back().push_back(entry.incarnation());
    }
    return applied;
  }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
  v1::ShardStatus status_;
};

// ---- What the chief shows of itself.

TEST_F(ChiefHeartbeatTest, AServerKnowsWhetherTheChiefIsThereAndStays) {
  EXPECT_EQ(server_.handler.chief_sign().silence, absl::InfiniteDuration());
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_FALSE(server_.handler.chief_sign().stopping);
  server_.clock.Advance(absl::Seconds(2));
  EXPECT_EQ(server_.handler.chief_sign().silence, absl::Seconds(2));
  request.set_stopping(true);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(server_.handler.chief_sign().silence, absl::ZeroDuration());
  EXPECT_TRUE(server_.handler.chief_sign().stopping);
  request.set_stopping(false);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_FALSE(server_.handler.chief_sign().stopping) << "a restarted one, say";
}

// ---- Members.

TEST_F(ChiefHeartbeatTest, CallsOfAnIncarnationThatIsOverAreRefusedForGood) {
  Initialize();
  ASSERT_TRUE(Push(5, 1).ok());
  const float before = Value();
  Announce(&server_.handler, {5});
  const absl::Status over =
      absl::AbortedError("membership of worker-0 is over: its calls are refused");
  EXPECT_EQ(Push(5, 1), over);
  EXPECT_EQ(Push(5, 2), over);
  EXPECT_EQ(Call(BulkMethod::kPushPull, ConstantPushOf(placement_, 0, 5, 2, 1)), over);
  EXPECT_EQ(Call(BulkMethod::kPush, StagedPushOf(placement_, 0, 5, 2, {0, 1}, 1, 1)), over);
  TestRequest pull = PullOf(placement_, 0);
  pull.header.incarnation = 5;
  EXPECT_EQ(Call(BulkMethod::kPull, pull), over);
  EXPECT_EQ(Value(), before);
  const v1::ShardStatus status = StatusOf(&server_.handler);
  EXPECT_EQ(status.members(), 299);
  EXPECT_EQ(status.member_epoch(), 2u);
  EXPECT_EQ(status.refused_pushes(), 5);
  EXPECT_TRUE(Push(6, 1).ok()) << "others go on";
}

TEST_F(ChiefHeartbeatTest, NobodyBelongsBeforeTheChiefSaysWho) {
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.clear_members();
  ASSERT_TRUE(Initialize(request).ok());
  const absl::Status unknown = Push(5, 1);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("has not announced this member yet"));
  Announce(&server_.handler, {});
  EXPECT_TRUE(Push(5, 1).ok());
}

TEST_F(ChiefHeartbeatTest, ANewMemberComesAgainUntilTheServerHasHeardOfIt) {
  Initialize();
  TestRequest push = ConstantPushOf(placement_, 0, 1000, 1, 1);
  push.header.member_epoch = 2;
  EXPECT_EQ(Call(BulkMethod::kPush, push).code(), absl::StatusCode::kUnavailable);
  Announce(&server_.handler, {}, {1000});
  EXPECT_TRUE(Call(BulkMethod::kPush, push).ok());
  Announce(&server_.handler, {});
  EXPECT_EQ(Call(BulkMethod::kPush, push).code(), absl::StatusCode::kAborted);
}

TEST_F(ChiefHeartbeatTest, AMemberCallsAsItsOwnTaskOnly) {
  Initialize();
  TestRequest push = ConstantPushOf(placement_, 0, 5, 1, 1);
  push.header.task_index = 1;
  EXPECT_EQ(Call(BulkMethod::kPush, push),
            absl::AbortedError("membership of worker-1 is over: its calls are refused"));
  push.header.task_index = 0;
  push.header.role = v1::ROLE_EVALUATOR;
  EXPECT_EQ(Call(BulkMethod::kPush, push).code(), absl::StatusCode::kAborted);
}

TEST_F(ChiefHeartbeatTest, TheNewestEpochOfTheNewestChiefCounts) {
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  *request.mutable_members() = TestMembers(5);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  *request.mutable_members() = TestMembers(4, {5});  // overtaken on the way
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(status_.member_epoch(), 5u);
  EXPECT_EQ(status_.members(), 300);
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  request.clear_members();
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(status_.member_epoch(), 5u) << "until it announces, its predecessor's members go on";
  *request.mutable_members() = TestMembers(3, {5});
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(status_.member_epoch(), 3u);
  EXPECT_EQ(status_.members(), 299);
}

TEST_F(ChiefHeartbeatTest, AnEmptyServerRemembersThemForItsShard) {
  Announce(&server_.handler, {5, 6});
  EXPECT_EQ(Push(5, 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Push(7, 1).code(), absl::StatusCode::kUnavailable);
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.clear_members();
  ASSERT_TRUE(Initialize(request).ok());
  EXPECT_EQ(Push(5, 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Push(6, 1).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Push(7, 1).ok());
}

TEST_F(ChiefHeartbeatTest, InitializeNamesThemToo) {
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  *request.mutable_members() = TestMembers(1, {5});
  ASSERT_TRUE(Initialize(request).ok());
  EXPECT_EQ(Push(5, 1).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(Push(6, 1).ok());
  *request.mutable_members() = TestMembers(2, {5, 6});
  ASSERT_TRUE(Initialize(request).ok());
  EXPECT_EQ(Push(6, 2).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(StatusOf(&server_.handler).shard_step(), 1) << "the shard is the same as before";
}

TEST_F(ChiefHeartbeatTest, BlocksRememberMembersOnly) {
  Initialize();
  for (uint64_t incarnation = 1; incarnation <= 4; ++incarnation) {
    ASSERT_TRUE(Push(incarnation, 1).ok());
  }
  for (const auto& applied : Applied()) EXPECT_THAT(applied, UnorderedElementsAre(1, 2, 3, 4));
  Announce(&server_.handler, {3, 1});
  for (const auto& applied : Applied()) EXPECT_THAT(applied, UnorderedElementsAre(2, 4));
  Announce(&server_.handler, {3, 1, 4}, {1000});
  for (const auto& applied : Applied()) EXPECT_THAT(applied, ElementsAre(2));
}

TEST_F(ChiefHeartbeatTest, ARestoredShardForgetsOthers) {
  Initialize();
  ASSERT_TRUE(Push(1, 1).ok());
  ASSERT_TRUE(Push(2, 1).ok());
  Snapshot();
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  *request.mutable_members() = TestMembers(2, {2});
  request.set_restore_step(0);
  ASSERT_TRUE(Initialize(request).ok());
  for (const auto& applied : Applied()) EXPECT_THAT(applied, ElementsAre(1));
  EXPECT_EQ(Push(2, 2).code(), absl::StatusCode::kAborted);
}

// The pushes of a worker whose membership ends are applied before ChiefHeartbeat returns, or never.
TEST_F(ChiefHeartbeatTest, NothingOfAnIncarnationThatIsOverIsAppliedAfterwards) {
  Initialize();
  std::set<uint64_t> over;
  for (uint64_t incarnation = 1; incarnation <= 20; ++incarnation) {
    std::atomic<bool> pushing{false};
    std::vector<std::thread> workers;
    for (uint64_t w = 0; w < 3; ++w) {
      over.insert(incarnation * 10 + w);
      workers.emplace_back([&, w] {
        for (uint64_t sequence = 1;; ++sequence) {
          const absl::Status status = Push(incarnation * 10 + w, sequence);
          pushing = true;
          if (status.ok()) continue;
          EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
          return;
        }
      });
    }
    while (!pushing) std::this_thread::yield();
    Announce(&server_.handler, over);
    const float fenced = Value();
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(Value(), fenced);
  }
  for (const auto& applied : Applied()) EXPECT_THAT(applied, IsEmpty());
}

// ---- Job state and status.

TEST_F(ChiefHeartbeatTest, KeepsTheNewestJobState) {
  const auto job_state = [this] {
    v1::GetShardStatusRequest request;
    request.set_with_job_state(true);
    v1::ShardStatus status;
    EXPECT_TRUE(server_.handler.GetStatus(request, &status).ok());
    return status.job_state();
  };
  EXPECT_EQ(job_state(), "");
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_job_state("state");
  request.set_job_state_version(5);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(status_.job_state(), "") << "only GetStatus gives it back";
  EXPECT_EQ(status_.job_state_version(), 5u);
  EXPECT_EQ(job_state(), "state");

  request.set_job_state("older");
  request.set_job_state_version(4);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(job_state(), "state");
  EXPECT_EQ(status_.job_state_version(), 5u);

  request.clear_job_state();
  request.set_job_state_version(6);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(job_state(), "state");
  EXPECT_EQ(status_.job_state_version(), 5u);

  request.set_job_state("newer");
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  EXPECT_EQ(job_state(), "newer");
  Initialize();
  EXPECT_EQ(job_state(), "newer") << "it is not the shard's";
}

TEST_F(ChiefHeartbeatTest, TheJobStateOfAnEarlierTermGivesWayWhateverItsVersion) {
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_job_state("of a chief that was frozen");
  request.set_job_state_version(900);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  request.set_job_state("of its successor");
  request.set_job_state_version(850);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  v1::GetShardStatusRequest with_job_state;
  with_job_state.set_with_job_state(true);
  v1::ShardStatus status;
  ASSERT_TRUE(server_.handler.GetStatus(with_job_state, &status).ok());
  EXPECT_EQ(status.job_state(), "of its successor");
  EXPECT_EQ(status.job_state_version(), 850u);
  EXPECT_EQ(status.job_state_term(), kTestChief + 1);
}

TEST_F(ChiefHeartbeatTest, NoStatusGivesAMemberAway) {
  Initialize();
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.mutable_members()->set_epoch(1000);
  constexpr uint64_t kIncarnation = 0x1234567890abcdef;
  constexpr uint64_t kSecret = 0xfedcba0987654321;
  v1::MemberList::Member* const member = request.mutable_members()->add_members();
  member->mutable_task()->set_role(v1::ROLE_WORKER);
  member->set_incarnation(kIncarnation);
  member->set_membership_secret(kSecret);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  const std::string told =
      status_.SerializeAsString() + StatusOf(&server_.handler).SerializeAsString();
  EXPECT_EQ(status_.members(), 1);
  for (const uint64_t half : {kIncarnation, kSecret}) {
    std::string bytes(sizeof(half), '\0');
    std::memcpy(bytes.data(), &half, sizeof(half));
    EXPECT_EQ(told.find(bytes), std::string::npos);
  }
}

TEST_F(ChiefHeartbeatTest, StatusSaysWhichShard) {
  const Placement placement = TestPlacement(3);
  ASSERT_TRUE(Initialize(InitializeRequest(placement, 2)).ok());
  const v1::ShardStatus status = StatusOf(&server_.handler);
  EXPECT_EQ(status.placement_fingerprint(), placement.Fingerprint());
  EXPECT_EQ(status.shard(), 2u);
}

TEST_F(ChiefHeartbeatTest, DoesNotWaitForAShardThatIsBeingMade) {
  v1::InitializeChunk first;
  *first.mutable_start() = InitializeRequest(placement_, 0);
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  *request.mutable_members() = TestMembers(5);
  const auto next = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    EXPECT_TRUE(ChiefHeartbeat(request).ok());
    EXPECT_EQ(status_.state(), v1::ShardStatus::INITIALIZING);
    return absl::DataLossError("the snapshot is damaged");
  };
  v1::InitializeShardResponse response;
  EXPECT_EQ(server_.handler.InitializeStreamed(first, next, &response),
            absl::DataLossError("the snapshot is damaged"));
  EXPECT_EQ(StatusOf(&server_.handler).state(), v1::ShardStatus::EMPTY);
}

// ---- Chiefs.

struct ChiefCall {
  std::string name;
  std::function<absl::Status(ParameterControl*, const v1::RequestHeader&)> call;
};

void PrintTo(const ChiefCall& call, std::ostream* out) { *out << call.name; }

template <typename Request, typename Response>
ChiefCall CallOf(const std::string& name,
                 absl::Status (ParameterControl::*method)(const Request&, Response*)) {
  return {name, [method](ParameterControl* service, const v1::RequestHeader& header) {
            Request request;
            *request.mutable_header() = header;
            if constexpr (std::is_same_v<Request, v1::InitializeShardRequest>) {
              request.set_config_hash(kTestConfigHash);
            }
            Response response;
            return (service->*method)(request, &response);
          }};
}

std::vector<ChiefCall> ChiefCalls() {
  return {CallOf("Initialize", &ParameterControl::Initialize),
          CallOf("WriteSnapshot", &ParameterControl::WriteSnapshot),
          CallOf("ChiefHeartbeat", &ParameterControl::ChiefHeartbeat),
          CallOf("CommitRound", &ParameterControl::CommitRound),
          CallOf("Finish", &ParameterControl::Finish),
          {"StreamSnapshot",
           [](ParameterControl* service, const v1::RequestHeader& header) {
             v1::StreamSnapshotRequest request;
             *request.mutable_header() = header;
             v1::WriteSnapshotResponse response;
             return service->StreamSnapshot(
                 request, [](absl::string_view) { return absl::OkStatus(); }, &response);
           }},
          {"InitializeStreamed", [](ParameterControl* service, const v1::RequestHeader& header) {
             v1::InitializeChunk first;
             *first.mutable_start()->mutable_header() = header;
             first.mutable_start()->set_config_hash(kTestConfigHash);
             v1::InitializeShardResponse response;
             return service->InitializeStreamed(
                 first, [] { return std::optional<v1::InitializeChunk>(); }, &response);
           }}};
}

class ChiefCallTest : public ChiefHeartbeatTest, public testing::WithParamInterface<ChiefCall> {};

INSTANTIATE_TEST_SUITE_P(Calls, ChiefCallTest, testing::ValuesIn(ChiefCalls()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ChiefCallTest, AReplacedChiefIsRefused) {
  Initialize();
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  ASSERT_TRUE(ChiefHeartbeat(request).ok());
  const uint64_t store_id = status_.store_id();
  EXPECT_EQ(GetParam().call(&server_.handler, HeaderOf(kTestChief)),
            absl::AbortedError(GetParam().name + ": another chief has taken the caller's place: "
                                                 "expected a term above 78, found 77"));
  EXPECT_FALSE(server_.end.raised());
  EXPECT_EQ(StatusOf(&server_.handler).store_id(), store_id);
  EXPECT_TRUE(ChiefHeartbeat(request).ok()) << "the newer one still is the chief";
}

// A frozen chief wakes up and is the first to call a server that was restarted.
TEST_P(ChiefCallTest, AChiefOfAnEarlierTermThatCallsFirstEndsNobody) {
  GetParam().call(&server_.handler, HeaderOf(kTestChief)).IgnoreError();
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  EXPECT_EQ(ChiefHeartbeat(request), absl::OkStatus());
  EXPECT_EQ(status_.chief_term(), kTestChief + 1);
  EXPECT_EQ(GetParam().call(&server_.handler, HeaderOf(kTestChief)).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(ChiefHeartbeat(request), absl::OkStatus());
}

TEST_P(ChiefCallTest, ANewChiefTakesThePlaceWithAnyCall) {
  Initialize();
  GetParam().call(&server_.handler, HeaderOf(kTestChief + 1)).IgnoreError();
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  EXPECT_EQ(ChiefHeartbeat(request).code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace keelson
