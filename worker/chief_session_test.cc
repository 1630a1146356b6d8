#include "worker/chief_session.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "worker/fake_chief.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

absl::Status Away() { return absl::UnavailableError("connection refused"); }

class ChiefSessionTest : public testing::Test {
 protected:
  static ChiefSession::Options MakeOptions() {
    ChiefSession::Options options;
    options.self = {Role::kWorker, 3};
    options.membership = {7, 8};
    options.config_hash = 0xabc;
    options.peer = "host:1";
    options.retry.first_pause = absl::Nanoseconds(1);
    options.retry.longest_pause = absl::Nanoseconds(1);
    options.heartbeat_interval = absl::Milliseconds(1);
    return options;
  }
  void Join() { ASSERT_EQ(session_.Join(), absl::OkStatus()); }
  Ticket NextTicket() {
    const auto next = session_.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE(next.ok() && next->has_value());
    return next.ok() && next->has_value() ? **next : Ticket();
  }
  void ExpectEnd() {
    const auto next = session_.Next();
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_FALSE(next->has_value());
  }
  void Finish(const Ticket& ticket) {
    FinishedStep step;
    step.ticket = ticket;
    progress_.Finish(step);
  }

  ManualClock clock_;
  StopSignal stop_;
  FakeChief chief_;
  Progress progress_;
  ChiefSession session_{MakeOptions(), &chief_, &progress_, &clock_, &stop_};
};

TEST_F(ChiefSessionTest, JoinTellsWhoThisIs) {
  Join();
  const auto registered = chief_.registered();
  ASSERT_THAT(registered, SizeIs(1));
  EXPECT_EQ(registered[0].header().task().index(), 3u);
  EXPECT_EQ(registered[0].header().incarnation(), 7u);
  EXPECT_EQ(registered[0].header().membership_secret(), 8u);
  EXPECT_EQ(registered[0].config_hash(), 0xabcu);
  EXPECT_EQ(registered[0].peer(), "host:1");
}

TEST_F(ChiefSessionTest, JoinWaitsForAChiefThatIsAway) {
  chief_.FailNext(&ChiefService::Register, {Away(), Away()});
  Join();
  EXPECT_THAT(chief_.registered(), SizeIs(3));
}

TEST_F(ChiefSessionTest, JoinGivesUpOnAnotherConfiguration) {
  chief_.FailNext(&ChiefService::Register, {absl::FailedPreconditionError("hash")});
  EXPECT_EQ(session_.Join().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(chief_.registered(), SizeIs(1));
}

TEST_F(ChiefSessionTest, JoinWaitsForTheLeaseOfItsPredecessor) {
  chief_.FailNext(&ChiefService::Register, {absl::AlreadyExistsError("held")});
  Join();
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(ChiefSessionTest, JoinGivesUpOnATaskThatALiveProcessHolds) {
  chief_.Answer(&ChiefService::Register, [this](const auto&, auto*) {
    clock_.Advance(absl::Seconds(15));
    return absl::AlreadyExistsError("worker-3 is held by host:2");
  });
  const absl::Status status = session_.Join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("host:2"));
}

TEST_F(ChiefSessionTest, StopEndsTheWaitToJoin) {
  stop_.Raise();
  EXPECT_EQ(session_.Join().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefSessionTest, WaitForModelAsksUntilItIsThere) {
  v1::GetModelResponse model;
  model.add_ps_addresses("ps-0:1");
  chief_.SetModel(model);
  chief_.FailNext(&ChiefService::GetModel, {absl::DeadlineExceededError("not yet"), Away()});
  Join();
  const auto located = session_.WaitForModel();
  ASSERT_TRUE(located.ok()) << located.status();
  EXPECT_EQ(located->ps_addresses(0), "ps-0:1");
}

TEST_F(ChiefSessionTest, WaitForModelRegistersAgainAtARestartedChief) {
  Join();
  chief_.FailNext(&ChiefService::GetModel, {absl::AbortedError("not a member")});
  EXPECT_TRUE(session_.WaitForModel().ok());
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(ChiefSessionTest, WaitForModelEndsWhenTheJobHasFailed) {
  Join();
  chief_.FailNext(&ChiefService::GetModel, {absl::FailedPreconditionError("ps-1 never came")});
  EXPECT_EQ(session_.WaitForModel().status().code(), absl::StatusCode::kFailedPrecondition);
}

// What a watcher is told at once, after a heartbeat that begins now was answered.
std::vector<ServerNews::Addresses> ToldAtOnce(FakeChief* chief, ChiefSession* session) {
  // A heartbeat is sent when the answer to the one before was taken.
  chief->AwaitHeartbeats(3);
  std::vector<ServerNews::Addresses> told;
  Mutex mu;
  session->WatchServers([&](const ServerNews::Addresses& addresses) {
    MutexLock lock(&mu);
    told.push_back(addresses);
  });
  session->WatchServers(nullptr);
  return told;
}

TEST_F(ChiefSessionTest, TheShardsNewAddressesAreTold) {
  v1::GetModelResponse model;
  model.add_ps_addresses("a:1");
  model.set_servers_version(1);
  chief_.SetModel(model);
  chief_.MoveServers(1, {"a:1"});
  Join();
  ASSERT_TRUE(session_.WaitForModel().ok());
  EXPECT_THAT(ToldAtOnce(&chief_, &session_), IsEmpty()) << "they came with the model";
  chief_.MoveServers(2, {"b:1"});
  EXPECT_THAT(ToldAtOnce(&chief_, &session_), ElementsAre(ElementsAre("b:1")));
}

TEST_F(ChiefSessionTest, RequestsForWorkLearnTheAddressesToo) {
  v1::GetModelResponse model;
  model.set_servers_version(1);
  chief_.SetModel(model);
  chief_.Answer(&ChiefService::Heartbeat, [](const auto&, auto*) { return absl::OkStatus(); });
  Join();
  ASSERT_TRUE(session_.WaitForModel().ok());
  chief_.MoveServers(2, {"b:1"});
  chief_.AddLease(50, 0, 1);
  NextTicket();
  std::vector<ServerNews::Addresses> told;
  session_.WatchServers([&](const ServerNews::Addresses& addresses) { told.push_back(addresses); });
  session_.WatchServers(nullptr);
  EXPECT_THAT(told, ElementsAre(ElementsAre("b:1")));
}

TEST_F(ChiefSessionTest, ARestartedChiefNumbersTheAddressesAnew) {
  v1::GetModelResponse model;
  model.set_servers_version(7);
  chief_.SetModel(model);
  Join();
  ASSERT_TRUE(session_.WaitForModel().ok());
  chief_.MoveServers(1, {"c:1"});
  EXPECT_THAT(ToldAtOnce(&chief_, &session_), IsEmpty()) << "an answer that was overtaken";
  chief_.Forget();
  chief_.AwaitRegistrations(2);
  EXPECT_THAT(ToldAtOnce(&chief_, &session_), ElementsAre(ElementsAre("c:1")));
}

TEST_F(ChiefSessionTest, TicketsComeInOrderUntilTrainingIsOver) {
  chief_.AddLease(50, 8, 2);
  chief_.AddLease(51, 10, 1);
  Join();
  const Ticket first = NextTicket();
  EXPECT_EQ(first.step, 8);
  EXPECT_EQ(first.lease_id, 50u);
  EXPECT_EQ(first.begin, 0);
  EXPECT_EQ(first.end, 4);
  EXPECT_TRUE(progress_.IsValid(first));
  EXPECT_EQ(NextTicket().step, 9);
  EXPECT_EQ(NextTicket().lease_id, 51u);
  chief_.SetPhase(v1::FINISHING);
  ExpectEnd();
}

TEST_F(ChiefSessionTest, AFinishedLeaseIsToldAtOnce) {
  chief_.AddLease(50, 0, 2);
  Join();
  Finish(NextTicket());
  Finish(NextTicket());
  chief_.AwaitCompleted(50, 2);
  ExpectEnd();
  EXPECT_EQ(chief_.sums().steps(), 2);
}

TEST_F(ChiefSessionTest, ASynchronousStepIsToldWithoutAwaitingAHeartbeat) {
  ChiefSession::Options options = MakeOptions();
  options.heartbeat_interval = absl::Hours(1);
  ChiefSession session(options, &chief_, &progress_, &clock_, &stop_);
  for (const uint64_t id : {50, 51}) chief_.AddSynchronousLease(id, 0, 1, /*contested=*/false);
  ASSERT_EQ(session.Join(), absl::OkStatus());
  const Ticket first = (*session.Next()).value();
  Thread trains([&] { Finish(first); });
  EXPECT_EQ((*session.Next()).value().lease_id, 51u);
  trains.Join();
  chief_.AwaitCompleted(50, 1);
}

TEST_F(ChiefSessionTest, StopEndsTheWaitForASynchronousStep) {
  chief_.AddSynchronousLease(50, 0, 1, /*contested=*/false);
  chief_.Withhold(true);
  Join();
  NextTicket();
  stop_.Raise();
  EXPECT_EQ(session_.Next().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefSessionTest, ARequestThatIsSentAgainKeepsItsNumber) {
  chief_.AddLease(50, 0, 1);
  chief_.AddLease(51, 1, 1);
  Join();
  chief_.FailNext(&ChiefService::AcquireWork, {Away(), absl::DeadlineExceededError("late")});
  NextTicket();
  NextTicket();
  EXPECT_THAT(chief_.sequences(), ElementsAre(1, 1, 1, 2));
}

TEST_F(ChiefSessionTest, ProgressOfAFailedHeartbeatIsToldLater) {
  chief_.AddLease(50, 0, 2);
  Join();
  Finish(NextTicket());
  chief_.FailNext(&ChiefService::Heartbeat, {Away(), Away()});
  Finish(NextTicket());
  chief_.AwaitCompleted(50, 2);
  EXPECT_EQ(chief_.sums().steps(), 2);
}

TEST_F(ChiefSessionTest, ARestartedChiefIsToldWhatThisWorkerHolds) {
  chief_.AddLease(50, 8, 2);
  Join();
  const Ticket first = NextTicket();
  Finish(first);
  chief_.Forget();
  chief_.AwaitRegistrations(2);
  const v1::RegisterRequest again = chief_.registered()[1];
  EXPECT_EQ(again.header().incarnation(), 7u);
  EXPECT_EQ(again.header().membership_secret(), 8u);
  ASSERT_THAT(again.leases(), SizeIs(1));
  EXPECT_EQ(again.leases(0).lease_id(), 50u);
  EXPECT_EQ(again.leases(0).completed_steps(), 1);
  ASSERT_THAT(again.leases(0).tickets(), SizeIs(2));
  EXPECT_EQ(again.leases(0).tickets(1).step(), 9);
  EXPECT_EQ(again.leases(0).tickets(1).records().begin(), 4);
  EXPECT_EQ(again.leases(0).tickets(1).records().end(), 8);
}

TEST_F(ChiefSessionTest, LeasesThatARestartedChiefKeepsGoOn) {
  chief_.AddLease(50, 0, 3);
  Join();
  const Ticket first = NextTicket();
  chief_.Forget();
  chief_.AwaitRegistrations(2);
  chief_.AwaitHeartbeats(2);
  EXPECT_TRUE(progress_.IsValid(first));
  EXPECT_EQ(NextTicket().step, 1);
  EXPECT_EQ(NextTicket().step, 2);
  for (int i = 0; i < 3; ++i) Finish(first);
  chief_.AwaitCompleted(50, 3);
  EXPECT_EQ(session_.status(), absl::OkStatus());
}

TEST_F(ChiefSessionTest, LeasesThatARestartedChiefGaveToOthersAreDropped) {
  chief_.AddLease(50, 0, 3);
  chief_.AddLease(60, 0, 1);
  Join();
  const Ticket old = NextTicket();
  chief_.Forget({50});
  while (progress_.IsValid(old)) chief_.AwaitHeartbeats(1);
  EXPECT_EQ(NextTicket().lease_id, 60u) << "the queued tickets went too";
}

TEST_F(ChiefSessionTest, AFinishedLeaseIsRememberedUntilItIsStored) {
  chief_.SetStateVersions(41, 40);
  chief_.AddLease(50, 0, 1);
  Join();
  Finish(NextTicket());
  chief_.AwaitCompleted(50, 1);
  chief_.Forget();
  chief_.AwaitRegistrations(2);
  ASSERT_THAT(chief_.registered()[1].leases(), SizeIs(1));
  EXPECT_EQ(chief_.registered()[1].leases(0).completed_steps(), 1);
  chief_.SetStateVersions(42, 41);
  chief_.AwaitHeartbeats(2);
  chief_.Forget();
  chief_.AwaitRegistrations(3);
  EXPECT_THAT(chief_.registered()[2].leases(), IsEmpty());
}

// The chief that granted the lease is gone; the one that is there does not know it.
TEST_F(ChiefSessionTest, ALeaseOfAChiefThatIsGoneIsAskedForAgain) {
  chief_.AddLease(50, 0, 1);
  chief_.AddLease(60, 0, 1);
  Join();
  chief_.OnNextGrant([&] {
    chief_.Forget();
    chief_.AwaitRegistrations(2);
  });
  EXPECT_EQ(NextTicket().lease_id, 60u);
  EXPECT_THAT(chief_.sequences(), ElementsAre(1, 1)) << "so that no lease is granted twice";
  EXPECT_THAT(chief_.registered()[1].leases(), IsEmpty());
}

TEST_F(ChiefSessionTest, NextRegistersAgainAtARestartedChief) {
  Join();
  chief_.AddLease(50, 0, 1);
  chief_.FailNext(&ChiefService::AcquireWork, {absl::AbortedError("not a member")});
  EXPECT_EQ(NextTicket().lease_id, 50u);
  EXPECT_THAT(chief_.registered(), SizeIs(2));
  EXPECT_THAT(chief_.sequences(), ElementsAre(1, 1));
}

TEST_F(ChiefSessionTest, ALateAbortedHeartbeatDoesNotRegisterOnceMore) {
  chief_.AddLease(50, 0, 1);
  Join();
  // A heartbeat is refused, but before the answer arrives the worker has registered for its request
  // for work.
  StopSignal refused;
  StopSignal granted;
  chief_.Forget({}, [&] {
    refused.Raise();
    granted.Wait();
  });
  refused.Wait();
  const Ticket ticket = NextTicket();
  granted.Raise();
  chief_.AwaitHeartbeats(2);
  EXPECT_TRUE(progress_.IsValid(ticket));
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(ChiefSessionTest, ALostMembershipEndsTheSession) {
  Join();
  chief_.Lose();
  session_.ended()->Wait();
  EXPECT_EQ(session_.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(session_.Next().status(), session_.status());
  EXPECT_EQ(session_.WaitForModel().status(), session_.status());
  EXPECT_EQ(session_.Confirm(), session_.status());
  EXPECT_FALSE(stop_.raised()) << "the caller's signal is the caller's";
  session_.Leave();
  EXPECT_EQ(chief_.left(), 0) << "there is nothing to leave";
}

TEST_F(ChiefSessionTest, AReplacedWorkerIsToldWhoHasItsTask) {
  FaultyChiefService slow(&chief_);
  slow.Answer(&ChiefService::Register, [this](const auto& request, auto* response) {
    clock_.Advance(absl::Seconds(2));
    return chief_.Register(request, response);
  });
  ChiefSession session(MakeOptions(), &slow, &progress_, &clock_, &stop_);
  ASSERT_EQ(session.Join(), absl::OkStatus());
  chief_.Replace("host:2");
  session.ended()->Wait();
  EXPECT_EQ(session.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("host:2"));
}

TEST_F(ChiefSessionTest, ConfirmAsksTheChief) {
  chief_.AddLease(50, 0, 1);
  Join();
  const Ticket ticket = NextTicket();
  EXPECT_EQ(session_.Confirm(), absl::OkStatus());
  EXPECT_THAT(chief_.registered(), SizeIs(2));
  EXPECT_TRUE(progress_.IsValid(ticket));
  chief_.Lose();
  EXPECT_EQ(session_.Confirm().code(), absl::StatusCode::kAborted);
}

TEST_F(ChiefSessionTest, AdmitAsksWhetherTheGradientCounts) {
  chief_.AddSynchronousLease(50, 4, 3, true);
  chief_.AddSynchronousLease(51, 4, 3, true);
  chief_.DoNotAdmit(51);
  Join();
  const Ticket wanted = NextTicket();
  EXPECT_EQ(wanted.attempt, 3u);
  EXPECT_TRUE(wanted.contested);
  EXPECT_TRUE(wanted.fresh_values);
  chief_.FailNext(&ChiefService::Admit, {Away(), absl::AbortedError("not a member")});
  EXPECT_EQ(session_.Admit(wanted).value(), true);
  EXPECT_EQ(session_.Admit(NextTicket()).value(), false);
  const auto asked = chief_.Requests(&ChiefService::Admit);
  ASSERT_THAT(asked, SizeIs(4)) << "two of them failed";
  EXPECT_EQ(asked[0].lease_id(), 50u);
  EXPECT_EQ(asked[0].step(), 4);
  EXPECT_EQ(asked[0].attempt(), 3u);
}

TEST_F(ChiefSessionTest, ATicketThatIsNotHeldIsNotAdmitted) {
  chief_.AddSynchronousLease(50, 4, 3, true);
  Join();
  const Ticket ticket = NextTicket();
  chief_.Forget({50});
  while (progress_.IsValid(ticket)) chief_.AwaitHeartbeats(1);
  EXPECT_EQ(session_.Admit(ticket).value(), false);
  EXPECT_THAT(chief_.Requests(&ChiefService::Admit), IsEmpty());
}

TEST_F(ChiefSessionTest, ALeaseMayWantFreshValues) {
  v1::AcquireWorkResponse lease = FakeChief::MakeLease(50, 0, 1);
  chief_.AddLease(lease);
  lease.set_lease_id(51);
  lease.set_fresh_values(true);
  chief_.AddLease(lease);
  Join();
  EXPECT_FALSE(NextTicket().fresh_values);
  EXPECT_TRUE(NextTicket().fresh_values);
}

TEST_F(ChiefSessionTest, ALeaseOfAStreamSaysWhichFilesItsRecordsAreIn) {
  MemoryFileSystem files;
  ASSERT_EQ(files.CreateDirectories("/d"), absl::OkStatus());
  files.SetContent("/d/part-1", "1 10:1\n1 11:1\n1 12:1\n1 13:1\n");
  v1::DataConfig config;
  config.set_data_dir("/d");
  config.mutable_libsvm();
  const RecordSchema schema = {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 2}}};
  StreamDataset stream(std::make_shared<const StreamDirectory>(config, schema, &files));
  ChiefSession::Options options = MakeOptions();
  options.stream = &stream;
  ChiefSession session(options, &chief_, &progress_, &clock_, &stop_);
  v1::AcquireWorkResponse lease = FakeChief::MakeLease(50, 0, 1);
  v1::StreamFile* const file = lease.add_stream_files();
  file->set_name("part-1");
  file->set_end(4);
  chief_.AddLease(lease);
  ASSERT_EQ(session.Join(), absl::OkStatus());
  const auto ticket = session.Next();
  ASSERT_TRUE(ticket.ok() && ticket->has_value()) << ticket.status();
  Batch batch;
  ASSERT_EQ(stream.Read({(*ticket)->begin, (*ticket)->end - 1}, &batch), absl::OkStatus());
  EXPECT_THAT(batch.features[0].ids, ElementsAre(10, 13));
}

TEST_F(ChiefSessionTest, NextTellsWhyTheChiefHasGivenUp) {
  Join();
  chief_.SetPhase(v1::FAILED, "disk full");
  const auto next = session_.Next();
  EXPECT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(next.status().message(), "the chief has given up: disk full");
}

TEST_F(ChiefSessionTest, HeartbeatsAreNoMoreOftenThanTheChiefWants) {
  chief_.Answer(&ChiefService::Heartbeat, [](const auto&, auto* response) {
    response->mutable_next_after()->set_seconds(3600);
    return absl::OkStatus();
  });
  chief_.AddLease(1, 0, 1);
  Join();
  const Ticket ticket = NextTicket();
  // At an interval of a millisecond there would be dozens meanwhile.
  const absl::Time end = absl::Now() + absl::Milliseconds(40);
  while (absl::Now() < end) ASSERT_TRUE(session_.Admit(ticket).ok());
  EXPECT_LE(chief_.Count(&ChiefService::Heartbeat), 2);
}

TEST_F(ChiefSessionTest, AHeartbeatThatTellsOfFailureEndsTheWork) {
  chief_.AddLease(50, 0, 100);
  Join();
  NextTicket();
  chief_.SetPhase(v1::FAILED, "disk full");
  session_.ended()->Wait();
  const auto next = session_.Next();
  EXPECT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(next.status().message()), HasSubstr("disk full"));
}

TEST_F(ChiefSessionTest, StopEndsNext) {
  Join();
  stop_.Raise();
  EXPECT_EQ(session_.Next().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ChiefSessionTest, NextGivesUpOnAChiefThatStaysAway) {
  chief_.Answer(&ChiefService::AcquireWork, [this](const auto&, auto*) {
    clock_.Advance(absl::Minutes(10));
    return Away();
  });
  Join();
  const absl::Status status = session_.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waiting for the chief for 10m"));
  session_.Leave();
}

TEST_F(ChiefSessionTest, LeaveTellsTheLastProgressOnce) {
  chief_.AddLease(50, 0, 2);
  Join();
  Finish(NextTicket());
  session_.Leave();
  session_.Leave();
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
  EXPECT_EQ(chief_.sums().steps(), 1);
}

TEST_F(ChiefSessionTest, LeaveWithoutAChiefIsNoError) {
  Join();
  chief_.FailNext(&ChiefService::Leave, {Away()});
  session_.Leave();
  EXPECT_EQ(chief_.left(), 1);
}

}  // namespace
}  // namespace keelson
