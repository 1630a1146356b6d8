#include "worker/script/script_worker.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/base/thread.h"
#include "core/data/record_order.h"
#include "core/script/script_peer_testing.h"
#include "worker/fake_chief.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Kind = ScriptMessageKind;

constexpr uint64_t kSecret = 0x5ec2e7;

void Fill(absl::Span<float> array, float value) { absl::c_fill(array, value); }

// A worker with a chief and servers of tests; the test is its script.
class ScriptWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.self = {Role::kWorker, 1};
    options_.peer = "host:2";
    options_.variables = {{"w", Shape({3, 2}), {}}, {"scale", Shape(), {}}};
    options_.records = {32, 5, false, 0};
    options_.config_hash = 0xabc;
    options_.retry.first_pause = absl::Nanoseconds(1);
    options_.retry.longest_pause = absl::Nanoseconds(1);
    options_.new_membership = [this] { return MembershipId{next_incarnation_++, kSecret}; };
    v1::GetModelResponse model;
    *model.mutable_placement() = Placement::Compute(options_.variables, 1).ToProto();
    model.add_ps_addresses("ps-0:1");
    chief_.SetModel(model);
    auto socket = ScriptSocket::Create(script_.TakeAgentEnd(), &gone_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }

  void TearDown() override {
    script_.Close();
    if (thread_.Joinable()) thread_.Join();
  }

  void Start() {
    worker_ = std::make_unique<ScriptWorker>(
        options_, &chief_,
        [this](ParameterClientRequest request) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
          EXPECT_TRUE(request.memory.has_value());
          auto client = std::make_unique<FakeClient>(options_.variables, 1.0f, 1, request.memory,
                                                     &exchanges_);
          client->on_push = on_push_;
          return client;
        },
        socket_.get(), Clock::Real(), &gone_);
    thread_ = Thread([this] { status_ = worker_->Run(); });
  }

  // Starts the worker and greets it.
  void Join() {
    Start();
    script_.Hello();
    script_.ExpectModel();
  }

  // Asks for a ticket and returns its numbers.
  std::vector<uint64_t> NextTicket() {
    script_.Send(Kind::kNext, {1});
    return script_.Expect(Kind::kTicket);
  }

  // Takes the step; returns whether it counts.
  bool Step(uint64_t ticket, double loss = 0.5) {
    for (size_t v = 0; v < 2; ++v) Fill(script_.gradients(v), 2.0f);
    script_.Step(ticket, loss);
    const std::vector<uint64_t> result = script_.Expect(Kind::kResult);
    EXPECT_EQ(result.at(0), ticket);
    return result.at(1) == 1;
  }

  // Leaves, with nothing left to do, and waits for the worker's end.
  absl::Status Leave() {
    script_.Send(Kind::kLeave, {});
    for (std::optional<ScriptMessage> message = script_.Receive();
         message.has_value() && message->kind != Kind::kBye; message = script_.Receive()) {
    }
    thread_.Join();
    return status_;
  }

  // Waits for the worker's end, which is an error that the script is told.
  absl::Status Fails() {
    const std::optional<ScriptMessage> failed = script_.Receive();
    EXPECT_TRUE(failed.has_value() && failed->kind == Kind::kFailed);
    thread_.Join();
    if (failed.has_value()) {
      ScriptMessageReader reader(*failed);
      EXPECT_EQ(reader.Number(), static_cast<uint64_t>(status_.code()));
      EXPECT_EQ(reader.Text(), status_.message());
    }
    return status_;
  }

  ScriptWorkerOptions options_;
  FakeChief chief_;
  Exchanges exchanges_;
  std::function<absl::Status()> on_push_;
  uint64_t next_incarnation_ = 9;
  StopSignal gone_;
  ScriptPeer script_;
  std::unique_ptr<ScriptSocket> socket_;
  std::unique_ptr<ScriptWorker> worker_;
  absl::Status status_;
  Thread thread_;
};

TEST_F(ScriptWorkerTest, ComparesItsRecordsWithTheJobs) {
  options_.compares_records = true;
  v1::GetModelResponse model;
  *model.mutable_placement() = Placement::Compute(options_.variables, 1).ToProto();
  model.add_ps_addresses("ps-0:1");
  model.set_train_records(31);
  chief_.SetModel(model);
  Start();
  script_.Hello();
  EXPECT_EQ(Fails(), absl::InvalidArgumentError(
                         "records: expected 31, as many as the job has, found the script's 32"));
}

TEST_F(ScriptWorkerTest, AChiefThatDoesNotSayItsRecordsIsRefused) {
  options_.compares_records = true;
  Start();
  script_.Hello();
  EXPECT_EQ(Fails(), absl::InvalidArgumentError("records: expected a chief that says how many the "
                                                "job has, found one of an older build"));
}

TEST_F(ScriptWorkerTest, BoundsTheGradientsOfThoseThatAreTrained) {
  options_.clip = {1.0f, {0}};
  std::vector<float> pushed;
  on_push_ = [&] {
    pushed = {script_.gradients(0)[0], script_.gradients(0)[5], script_.gradients(1)[0]};
    return absl::OkStatus();
  };
  Join();
  chief_.AddLease(FakeChief::MakeLease(1, 0, 1));
  EXPECT_TRUE(Step(NextTicket().at(0)));
  // Six gradients of 2 have the norm sqrt(24).
  const float clipped = 2 / std::sqrt(24.0f);
  EXPECT_THAT(pushed, ElementsAre(FloatEq(clipped), FloatEq(clipped), 2.0f));
  EXPECT_EQ(Leave(), absl::OkStatus());
}

TEST_F(ScriptWorkerTest, ServesAScriptWithTheJobsRecords) {
  options_.compares_records = true;
  v1::GetModelResponse model;
  *model.mutable_placement() = Placement::Compute(options_.variables, 1).ToProto();
  model.add_ps_addresses("ps-0:1");
  model.set_train_records(32);
  chief_.SetModel(model);
  Join();
  EXPECT_EQ(Leave(), absl::OkStatus());
}

TEST_F(ScriptWorkerTest, TheScriptSeesTheModelsVariablesAndTheirValues) {
  chief_.AddLease(1, 0, 1);
  Join();
  EXPECT_THAT(script_.names(), ElementsAre("w", "scale"));
  EXPECT_THAT(script_.values(0), SizeIs(6));
  EXPECT_THAT(script_.values(1), SizeIs(1));
  EXPECT_THAT(script_.values(0), Each(1.0f));
  EXPECT_EQ(chief_.registered().at(0).device(), "a test");
  EXPECT_EQ(chief_.registered().at(0).config_hash(), 0xabcu);
}

TEST_F(ScriptWorkerTest, AStepPushesTheScriptsGradientsOnce) {
  chief_.AddLease(1, 7, 1);
  Join();
  const std::vector<uint64_t> ticket = NextTicket();
  ASSERT_TRUE(Step(ticket.at(0)));
  EXPECT_THAT(script_.values(0), Each(1.0f - 0.5f * 2));
  EXPECT_THAT(exchanges_.steps, ElementsAre(7));
  script_.Send(Kind::kNext, {1});
  EXPECT_EQ(script_.Expect(Kind::kNoMore).at(0), 8u);
  EXPECT_EQ(Leave(), absl::OkStatus());
  EXPECT_EQ(chief_.completed().at(1), 1);
  const v1::WorkerFigures sums = chief_.sums();
  EXPECT_EQ(sums.loss_sum(), 0.5);
  EXPECT_EQ(sums.compute_seconds(), 0.25);
  EXPECT_EQ(sums.input_seconds(), 0.125);
  EXPECT_EQ(sums.bytes_pushed(), 100);
}

TEST_F(ScriptWorkerTest, ATicketNamesItsRecordsInTheEpochsOrder) {
  chief_.AddLease(1, 0, 2);
  Join();
  NextTicket();
  const std::vector<uint64_t> second = NextTicket();
  const uint64_t begin = second.at(3), end = second.at(4);
  ASSERT_THAT(second, SizeIs(7 + end - begin));
  EXPECT_EQ(second.at(6), 0u);
  const RecordOrder order(32, 5, static_cast<int64_t>(second.at(2)), false);
  for (uint64_t i = begin; i < end; ++i) {
    EXPECT_EQ(second.at(7 + i - begin),
              static_cast<uint64_t>(order.Record(static_cast<int64_t>(i))));
  }
}

TEST_F(ScriptWorkerTest, ManyRecordsComeInSeveralMessages) {
  options_.records.count = 10000;
  v1::AcquireWorkResponse lease = FakeChief::MakeLease(1, 0, 1);
  lease.mutable_tickets(0)->mutable_records()->set_begin(0);
  lease.mutable_tickets(0)->mutable_records()->set_end(10000);
  chief_.AddLease(lease);
  Join();
  std::set<uint64_t> records;
  std::vector<uint64_t> ticket = NextTicket();
  while (true) {
    EXPECT_EQ(ticket.at(6), records.size());
    records.insert(ticket.begin() + 7, ticket.end());
    if (records.size() == 10000) break;
    ticket = script_.Expect(Kind::kTicket);
  }
  EXPECT_EQ(*records.rbegin(), 9999u);
}

TEST_F(ScriptWorkerTest, TicketsMayBeFetchedAheadOfTheSteps) {
  chief_.AddLease(1, 0, 3);
  Join();
  script_.Send(Kind::kNext, {3});
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 3; ++i) numbers.push_back(script_.Expect(Kind::kTicket).at(0));
  for (const uint64_t number : numbers) EXPECT_TRUE(Step(number));
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1, 2));
}

TEST_F(ScriptWorkerTest, AStepAsksForTheNextTicket) {
  chief_.AddLease(1, 0, 2);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  script_.Send(Kind::kStep, {ticket, 0, 0, 0, 1, 0});
  std::set<Kind> kinds;
  for (int i = 0; i < 2; ++i) kinds.insert(script_.Receive()->kind);
  EXPECT_THAT(kinds, UnorderedElementsAre(Kind::kTicket, Kind::kResult));
  script_.Send(Kind::kSkip, {ticket + 1, 0, 0});
  EXPECT_EQ(script_.Expect(Kind::kResult).at(1), 1u);
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  EXPECT_THAT(exchanges_.steps, ElementsAre(0));
}

TEST_F(ScriptWorkerTest, TheChiefIsAskedForMoreBeforeTheScriptIs) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  chief_.AwaitGrants(2);
  EXPECT_TRUE(Step(ticket));
  EXPECT_TRUE(Step(NextTicket().at(0)));
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1));
}

TEST_F(ScriptWorkerTest, AStepIsTakenWhileTheChiefHasNoMoreTickets) {
  chief_.Withhold(true);
  chief_.AddLease(1, 0, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  script_.Send(Kind::kNext, {1});
  EXPECT_TRUE(Step(ticket));
  chief_.Withhold(false);
  script_.Expect(Kind::kNoMore);
}

TEST_F(ScriptWorkerTest, BeginFetchesValuesThatTheTicketWants) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/false);
  chief_.AddSynchronousLease(2, 1, 1, /*contested=*/false);
  Join();
  for (int i = 0; i < 2; ++i) {
    const std::vector<uint64_t> ticket = NextTicket();
    EXPECT_EQ(ticket.at(5), kTicketWantsValues);
    const int pulls = exchanges_.pulls;
    script_.Send(Kind::kBegin, {ticket.at(0)});
    EXPECT_THAT(script_.Expect(Kind::kReady), ElementsAre(ticket.at(0), 1u, testing::_));
    EXPECT_EQ(exchanges_.pulls, pulls + 1);
    EXPECT_TRUE(Step(ticket.at(0)));
  }
  ASSERT_THAT(exchanges_.aggregations, SizeIs(2));
  EXPECT_EQ(exchanges_.aggregations[1].round, 1);
  EXPECT_EQ(exchanges_.aggregations[1].weight, 4);
}

TEST_F(ScriptWorkerTest, AGradientThatTheChiefDoesNotWantIsNotSent) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/true);
  chief_.DoNotAdmit(1);
  chief_.WriteOff(1);
  Join();
  EXPECT_FALSE(Step(NextTicket().at(0)));
  EXPECT_THAT(exchanges_.steps, IsEmpty());
}

TEST_F(ScriptWorkerTest, APushThatTheServersRefuseDoesNotCount) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/false);
  chief_.WriteOff(1);
  exchanges_.refused = {1};
  Join();
  EXPECT_FALSE(Step(NextTicket().at(0)));
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  chief_.AwaitRefused(1);
  ASSERT_THAT(chief_.refused(), SizeIs(1));
  EXPECT_EQ(chief_.refused()[0].lease_id(), 1u);
}

TEST_F(ScriptWorkerTest, ASkippedTicketIsDoneWithoutAPush) {
  chief_.AddLease(1, 0, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  script_.Send(Kind::kSkip, {ticket, std::bit_cast<uint64_t>(0.75), 0});
  EXPECT_THAT(script_.Expect(Kind::kResult), ElementsAre(ticket, 1u, 1u, 0u));
  chief_.AwaitCompleted(1, 1);
  EXPECT_THAT(exchanges_.steps, IsEmpty());
}

TEST_F(ScriptWorkerTest, ASkippedTicketOfARoundPushesZeros) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/false);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  Fill(script_.gradients(0), 3.0f);
  script_.Send(Kind::kSkip, {ticket, std::bit_cast<uint64_t>(0.75), 0});
  EXPECT_EQ(script_.Expect(Kind::kResult).at(1), 1u);
  EXPECT_THAT(exchanges_.norms, ElementsAre(0.0));
}

TEST_F(ScriptWorkerTest, ATicketThatIsSkippedBeforeThereIsALossHasNone) {
  chief_.AddLease(1, 0, 1);
  chief_.AddSynchronousLease(2, 1, 1, /*contested=*/false);
  Join();
  for (int i = 0; i < 2; ++i) {
    const uint64_t ticket = NextTicket().at(0);
    script_.Send(Kind::kSkip, {ticket, std::bit_cast<uint64_t>(std::nan("")), 0});
    EXPECT_EQ(script_.Expect(Kind::kResult).at(1), 1u);
  }
  EXPECT_EQ(Leave(), absl::OkStatus());
  EXPECT_EQ(chief_.sums().steps(), 2);
  EXPECT_EQ(chief_.sums().steps_without_loss(), 2);
  EXPECT_EQ(chief_.sums().non_finite_losses(), 0);
}

TEST_F(ScriptWorkerTest, ALossThatIsNotFiniteIsReportedAndNotPushed) {
  chief_.AddLease(1, 0, 1);
  chief_.WriteOff(1);
  Join();
  EXPECT_FALSE(Step(NextTicket().at(0), std::nan("")));
  chief_.AwaitNonFiniteLoss();
  EXPECT_THAT(exchanges_.steps, IsEmpty());
}

TEST_F(ScriptWorkerTest, AMembershipThatIsOverIsFollowedByAnother) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  chief_.Lose();
  chief_.AwaitRegistrations(3);  // The second one is refused.
  EXPECT_FALSE(Step(ticket));
  EXPECT_THAT(exchanges_.steps, IsEmpty());
  EXPECT_TRUE(Step(NextTicket().at(0)));
  EXPECT_THAT(exchanges_.steps, ElementsAre(1));
}

TEST_F(ScriptWorkerTest, TheValuesStayAsTheyAreUntilTheScriptBeginsAStep) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  chief_.Lose();
  chief_.AwaitRegistrations(3);  // The second one is refused.
  EXPECT_FALSE(Step(ticket));
  const uint64_t next = NextTicket().at(0);
  EXPECT_EQ(exchanges_.pulls, 1);
  script_.Send(Kind::kBegin, {next});
  script_.Expect(Kind::kReady);
  EXPECT_EQ(exchanges_.pulls, 2);
}

TEST_F(ScriptWorkerTest, AStepDuringWhichTheMembershipEndsIsAnswered) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  on_push_ = [this] {
    on_push_ = nullptr;
    chief_.Lose();
    return absl::AbortedError("ps-0: the membership is over");
  };
  Join();
  EXPECT_FALSE(Step(NextTicket().at(0)));
  EXPECT_TRUE(Step(NextTicket().at(0)));
}

TEST_F(ScriptWorkerTest, TicketsThatWereWantedComeFromTheNextMembership) {
  chief_.Withhold(true);
  Join();
  script_.Send(Kind::kNext, {1});
  chief_.AwaitHeartbeats(1);
  chief_.Lose();
  chief_.AwaitRegistrations(3);  // The second one is refused.
  chief_.AddLease(2, 4, 1);
  EXPECT_EQ(script_.Expect(Kind::kTicket).at(1), 4u);
}

TEST_F(ScriptWorkerTest, AScriptThatEndsLeavesAtOnce) {
  chief_.Withhold(true);
  chief_.AddLease(1, 0, 2);
  Join();
  NextTicket();
  script_.Close();
  thread_.Join();
  EXPECT_EQ(status_.code(), absl::StatusCode::kCancelled) << status_;
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(ScriptWorkerTest, AScriptMayLeaveBeforeTheEnd) {
  chief_.Withhold(true);
  Join();
  EXPECT_EQ(Leave(), absl::OkStatus());
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(ScriptWorkerTest, AfterTheEndTheWorkerHasLeftAndStillAnswers) {
  Join();
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  script_.Expect(Kind::kNoMore);
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_EQ(Leave(), absl::OkStatus());
}

TEST_F(ScriptWorkerTest, ValuesThatTheScriptLogsAreToldTheChief) {
  chief_.AddLease(1, 0, 1);
  Join();
  script_.Send(Kind::kLog, {3, std::bit_cast<uint64_t>(0.25)}, "accuracy");
  EXPECT_TRUE(Step(NextTicket().at(0)));
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  EXPECT_EQ(Leave(), absl::OkStatus());
  std::vector<std::string> told;
  const auto add = [&](const v1::WorkerProgress& progress) {
    for (const v1::LoggedValue& value : progress.logged()) told.push_back(value.ShortDebugString());
  };
  for (const auto& request : chief_.Requests(&ChiefService::Heartbeat)) add(request.progress());
  for (const auto& request : chief_.Requests(&ChiefService::AcquireWork)) add(request.progress());
  for (const auto& request : chief_.Requests(&ChiefService::Leave)) add(request.progress());
  EXPECT_THAT(told, ElementsAre("name: \"accuracy\" step: 3 value: 0.25"));
}

TEST_F(ScriptWorkerTest, ANameThatIsNoneEndsTheScriptsWork) {
  chief_.Withhold(true);
  Join();
  script_.Send(Kind::kLog, {3, std::bit_cast<uint64_t>(0.25)}, "two\nlines");
  EXPECT_THAT(Fails().message(), HasSubstr("expected 1 to 100 bytes of printable UTF-8"));
}

TEST_F(ScriptWorkerTest, ASnapshotIsWrittenWithTheStepsThatAreReported) {
  chief_.AddLease(1, 0, 2);
  Join();
  EXPECT_TRUE(Step(NextTicket().at(0)));
  chief_.Answer(&ChiefService::SaveSnapshot, [&](const auto& request, auto* response) {
    EXPECT_EQ(request.header().incarnation(), 9u);
    response->set_step(chief_.completed().at(1));
    return absl::OkStatus();
  });
  script_.Send(Kind::kSave, {});
  EXPECT_THAT(script_.Expect(Kind::kSaved), ElementsAre(0u, 1u));
  EXPECT_TRUE(Step(NextTicket().at(0)));
}

TEST_F(ScriptWorkerTest, ASnapshotThatCannotBeWrittenIsToldAndIsNoEnd) {
  chief_.AddLease(1, 0, 1);
  Join();
  chief_.FailNext(&ChiefService::SaveSnapshot, {absl::UnavailableError("the disk is full")});
  script_.Send(Kind::kSave, {});
  const std::optional<ScriptMessage> saved = script_.Receive();
  ASSERT_TRUE(saved.has_value() && saved->kind == Kind::kSaved);
  ScriptMessageReader reader(*saved);
  EXPECT_EQ(reader.Number(), static_cast<uint64_t>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(reader.Number(), 0u);
  EXPECT_EQ(reader.Text(), "the disk is full");
  EXPECT_TRUE(Step(NextTicket().at(0)));
}

TEST_F(ScriptWorkerTest, ASnapshotThatIsWantedWhenTheLastStepIsDoneIsTheLastOne) {
  chief_.Withhold(true);
  Join();
  std::atomic<int> asked = 0;
  chief_.Answer(&ChiefService::SaveSnapshot, [](const auto&, auto*) {
    return absl::FailedPreconditionError("the job does not train");
  });
  chief_.Answer(&ChiefService::GetJobStatus, [&asked](const auto&, auto* job) {
    constexpr v1::JobPhase kPhases[] = {v1::TRAINING, v1::FINISHING, v1::EVALUATING};
    job->set_phase(kPhases[std::min(asked++, 2)]);
    job->set_snapshot_step(8);
    return absl::OkStatus();
  });
  script_.Send(Kind::kSave, {});
  EXPECT_THAT(script_.Expect(Kind::kSaved), ElementsAre(0u, 8u));
  EXPECT_EQ(asked, 3);
}

TEST_F(ScriptWorkerTest, BeforeTrainingThereIsNoSnapshot) {
  chief_.Withhold(true);
  Join();
  chief_.FailNext(&ChiefService::SaveSnapshot, {absl::FailedPreconditionError("not yet")});
  chief_.Answer(&ChiefService::GetJobStatus, [](const auto&, auto* job) {
    job->set_phase(v1::WAITING_FOR_SERVERS);
    return absl::OkStatus();
  });
  script_.Send(Kind::kSave, {});
  EXPECT_EQ(script_.Expect(Kind::kSaved).at(0),
            static_cast<uint64_t>(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ScriptWorkerTest, AfterTheLastStepTheJobsOwnSnapshotIsAwaited) {
  Join();
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  script_.Expect(Kind::kNoMore);
  std::atomic<int> asked = 0;
  chief_.Answer(&ChiefService::GetJobStatus, [&asked](const auto&, auto* job) {
    const bool first = asked++ == 0;
    job->set_phase(first ? v1::FINISHING : v1::EVALUATING);
    job->set_snapshot_step(first ? 3 : 8);
    return absl::OkStatus();
  });
  script_.Send(Kind::kSave, {});
  EXPECT_THAT(script_.Expect(Kind::kSaved), ElementsAre(0u, 8u));
  EXPECT_EQ(chief_.Count(&ChiefService::SaveSnapshot), 0);
}

TEST_F(ScriptWorkerTest, AnotherProtocolIsRefused) {
  Start();
  script_.Send(Kind::kHello, {kScriptProtocol + 1}, "newer");
  const absl::Status status = Fails();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr(absl::StrCat("the script's protocol: expected ", kScriptProtocol,
                                     ", found ", kScriptProtocol + 1)));
  EXPECT_THAT(chief_.registered(), IsEmpty());
}

TEST_F(ScriptWorkerTest, ATicketThatTheScriptDoesNotHaveIsRefused) {
  chief_.AddLease(1, 0, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  script_.Step(ticket + 1, 0.5);
  EXPECT_THAT(Fails().message(),
              HasSubstr("expected the oldest ticket that is not finished, 1, found 2"));
}

TEST_F(ScriptWorkerTest, BytesThatAreNoMessageAreRefused) {
  Join();
  script_.SendBytes("abc");
  const absl::Status status = Fails();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("found 3 bytes"));
}

TEST_F(ScriptWorkerTest, AMessageOfTheWrongLengthIsRefused) {
  chief_.Withhold(true);
  Join();
  script_.Send(Kind::kNext, {1, 2});
  EXPECT_THAT(Fails().message(), HasSubstr("found kind 2 with 16 bytes"));
}

TEST_F(ScriptWorkerTest, AnErrorOfTheServersEndsTheScriptsWork) {
  chief_.AddLease(1, 0, 1);
  on_push_ = [] { return absl::InvalidArgumentError("ps-0: the gradient of w is not finite"); };
  Join();
  script_.Step(NextTicket().at(0), 0.5);
  EXPECT_EQ(Fails(), absl::InvalidArgumentError("ps-0: the gradient of w is not finite"));
}

// With a variable that has no gradient in a step.
class AbsentGradientTest : public ScriptWorkerTest {
 protected:
  // What lies in the array of the variable that is absent is of no step.
  void StepWithout(uint64_t ticket, uint64_t absent) {
    for (size_t v = 0; v < 2; ++v) Fill(script_.gradients(v), 2.0f);
    const uint64_t loss = std::bit_cast<uint64_t>(0.5);
    script_.Send(Kind::kStep, {ticket, loss, loss, loss, 0, 0, absent});
  }
};

TEST_F(AbsentGradientTest, LeavesTheVariableAsItIs) {
  chief_.AddLease(1, 0, 1);
  Join();
  StepWithout(NextTicket().at(0), 1);
  EXPECT_EQ(script_.Expect(Kind::kResult).at(1), 1u);
  EXPECT_THAT(exchanges_.omitted, ElementsAre(ElementsAre(1)));
  EXPECT_THAT(script_.values(0), Each(1.0f - 0.5f * 2));
  EXPECT_THAT(script_.values(1), Each(1.0f));
}

TEST_F(AbsentGradientTest, IsZeroInAMean) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/false);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  script_.Send(Kind::kBegin, {ticket});
  script_.Expect(Kind::kReady);
  StepWithout(ticket, 1);
  EXPECT_EQ(script_.Expect(Kind::kResult).at(1), 1u);
  EXPECT_THAT(exchanges_.aggregations, SizeIs(1));
  EXPECT_THAT(exchanges_.omitted, ElementsAre(IsEmpty()));
  EXPECT_THAT(script_.gradients(0), Each(2.0f));
  EXPECT_THAT(script_.gradients(1), Each(0.0f));
}

TEST_F(AbsentGradientTest, OfNoVariableIsRefused) {
  chief_.AddLease(1, 0, 1);
  Join();
  StepWithout(NextTicket().at(0), 2);
  EXPECT_EQ(Fails(), absl::InvalidArgumentError("STEP: expected a variable below 2, found 2"));
}

// With values that are held back, so that the script may offer gradients.
class ScriptOffersTest : public ScriptWorkerTest {
 protected:
  void SetUp() override {
    ScriptWorkerTest::SetUp();
    options_.hold_values = true;
  }

  // Offers a variable's gradient of the ticket.
  void Offer(uint64_t ticket, uint64_t variable) {
    Fill(script_.gradients(variable), 2.0f);
    script_.Send(Kind::kOffer, {ticket, variable});
  }
};

TEST_F(ScriptOffersTest, OfferedGradientsGoOutBeforeTheirStepAndValuesComeWithIt) {
  chief_.AddLease(1, 7, 2);
  on_push_ = [this] {
    EXPECT_THAT(exchanges_.offered, ElementsAre(ElementsAre(1, 0)));
    return absl::OkStatus();
  };
  Join();
  EXPECT_THAT(script_.values(0), Each(1.0f));
  const uint64_t ticket = NextTicket().at(0);
  Offer(ticket, 1);
  Offer(ticket, 0);
  NextTicket();  // Messages are handled in their order.
  EXPECT_THAT(script_.values(0), Each(1.0f));
  EXPECT_TRUE(Step(ticket));
  EXPECT_THAT(script_.values(0), Each(1.0f - 0.5f * 2));
  EXPECT_THAT(script_.values(1), Each(1.0f - 0.5f * 2));
  EXPECT_THAT(exchanges_.steps, ElementsAre(7));
}

TEST_F(ScriptOffersTest, StepsWithoutOffersAreAsEver) {
  chief_.AddLease(1, 0, 2);
  Join();
  EXPECT_TRUE(Step(NextTicket().at(0)));
  EXPECT_TRUE(Step(NextTicket().at(0)));
  EXPECT_THAT(script_.values(0), Each(1.0f - 0.5f * 2 * 2));
}

TEST_F(ScriptOffersTest, ValuesThatATicketWantsAreShown) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/false);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  script_.Send(Kind::kBegin, {ticket});
  script_.Expect(Kind::kReady);
  EXPECT_THAT(script_.values(0), Each(1.0f));
  Offer(ticket, 0);
  EXPECT_TRUE(Step(ticket));
  EXPECT_THAT(exchanges_.aggregations, SizeIs(1));
}

TEST_F(ScriptOffersTest, OffersThatTheChiefDoesNotWantAreNotSent) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/true);
  chief_.DoNotAdmit(1);
  chief_.WriteOff(1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  Offer(ticket, 0);
  Offer(ticket, 1);
  EXPECT_FALSE(Step(ticket));
  EXPECT_THAT(exchanges_.steps, IsEmpty());
}

TEST_F(ScriptOffersTest, OffersOfAMembershipThatIsOverAreForgotten) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  Offer(ticket, 1);
  chief_.Lose();
  chief_.AwaitRegistrations(3);  // The second one is refused.
  Offer(ticket, 0);
  EXPECT_FALSE(Step(ticket));
  EXPECT_TRUE(Step(NextTicket().at(0)));
  EXPECT_EQ(exchanges_.steps.back(), 1);
}

TEST_F(ScriptOffersTest, ALossThatIsNotFiniteAfterOffersIsReported) {
  chief_.AddLease(1, 0, 1);
  chief_.WriteOff(1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  Offer(ticket, 0);
  EXPECT_FALSE(Step(ticket, std::nan("")));
  chief_.AwaitNonFiniteLoss();
}

TEST_F(ScriptOffersTest, AfterOffersThereIsNoBegin) {
  chief_.AddLease(1, 0, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  Offer(ticket, 0);
  script_.Send(Kind::kBegin, {ticket});
  EXPECT_THAT(Fails().message(), HasSubstr("gradients were offered, found BEGIN"));
}

TEST_F(ScriptOffersTest, AfterOffersThereIsNoSkip) {
  chief_.AddLease(1, 0, 1);
  Join();
  const uint64_t ticket = NextTicket().at(0);
  Offer(ticket, 0);
  script_.Send(Kind::kSkip, {ticket, std::bit_cast<uint64_t>(0.75), 0});
  EXPECT_THAT(Fails().message(), HasSubstr("gradients were offered, found SKIP"));
}

TEST_F(ScriptOffersTest, AVariableThatThereIsNotIsRefused) {
  chief_.AddLease(1, 0, 1);
  Join();
  script_.Send(Kind::kOffer, {NextTicket().at(0), 2});
  const absl::Status status = Fails();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("OFFER: expected a variable below 2, found 2"));
}

TEST_F(ScriptWorkerTest, OffersWithoutValuesThatAreHeldAreRefused) {
  chief_.AddLease(1, 0, 1);
  Join();
  script_.Send(Kind::kOffer, {NextTicket().at(0), 0});
  EXPECT_THAT(Fails().message(), HasSubstr("expected --hold_values of the agent"));
}

TEST_F(ScriptWorkerTest, TheMemoryCanBeNeitherShrunkNorGrown) {
  auto memory = ScriptMemory::Create(options_.variables);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_NE(ftruncate((*memory)->fd(), 0), 0);
  EXPECT_NE(ftruncate((*memory)->fd(), static_cast<off_t>(2 * (*memory)->bytes())), 0);
}

TEST(ScriptSocketTest, OtherDescriptorsAreRefused) {
  StopSignal gone;
  const absl::Status status = ScriptSocket::Create(-1, &gone).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--script_socket: expected the descriptor of a "));
}

}  // namespace
}  // namespace keelson
