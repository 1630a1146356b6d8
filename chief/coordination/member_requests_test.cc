// Requests that wait without a thread each: what answers them, and when. The clock stands.
#include "chief/coordination/member_requests.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "chief/coordination/coordinator.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

// A thread that answers requests, until it ends.
class Answerer {
 public:
  explicit Answerer(Coordinator* coordinator)
      : thread_([this, coordinator] { coordinator->requests()->AnswerWaiting(stop_); }) {}
  ~Answerer() {
    stop_.Raise();
    thread_.join();
  }

 private:
  StopSignal stop_;
  std::thread thread_;
};

// An answer that may come later, from another thread.
template <typename T>
class Awaited {
 public:
  std::function<void(T)> Done() const {
    return [state = state_](T answer) {
      MutexLock lock(&state->mu);
      EXPECT_FALSE(state->answer.has_value()) << "answered twice";
      state->answer = std::move(answer);
      state->changed.NotifyAll();
    };
  }
  bool Came() const {
    MutexLock lock(&state_->mu);
    return state_->answer.has_value();
  }
  T Await() const {
    MutexLock lock(&state_->mu);
    while (!state_->answer.has_value()) state_->changed.Wait(&state_->mu);
    return *state_->answer;
  }

 private:
  struct State {
    Mutex mu;
    CondVar changed;
    std::optional<T> answer;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

using AwaitedWork = Awaited<MemberRequests::WorkAnswer>;
using AwaitedModel = Awaited<MemberRequests::ModelAnswer>;

bool GotNothing(const AwaitedWork& work) {
  const MemberRequests::WorkAnswer answer = work.Await();
  return answer.ok() && !answer->has_value();
}

class MemberRequestsTest : public testing::Test {
 protected:
  static Coordinator::Options OptionsOf(const char* mode) {
    Coordinator::Options options;
    options.config_hash = kHash;
    options.lease = kLease;
    options.mode = ConsistencyMode::Parse(mode).value();
    options.max_tickets_per_lease = 1;
    return options;
  }
  void Create(const Coordinator::Options& options) {
    answerer_.reset();
    coordinator_.emplace(options, &clock_);
    answerer_ = std::make_unique<Answerer>(&*coordinator_);
    ASSERT_TRUE(coordinator_->members()->Register(kWorker0, TestId(1), kHash, "host:1").ok());
    ASSERT_TRUE(coordinator_->members()->Register(kWorker1, TestId(2), kHash, "host:2").ok());
  }
  void Begin(const char* mode, int64_t steps) {
    Create(OptionsOf(mode));
    Train(steps);
  }
  void Train(int64_t steps) {
    WorkOptions work;
    work.max_steps = steps;
    work.num_records = 1000;
    work.batch_size = 10;
    coordinator_->start()->StartTraining({}, WorkLedger(work));
  }
  std::optional<MemberRequests::RequestId> Request(Task task, uint64_t incarnation,
                                                   const AwaitedWork& work, uint64_t sequence = 0,
                                                   absl::Duration max_wait = kLong) {
    return coordinator_->requests()->RequestWork(task, TestId(incarnation), {}, max_wait, sequence,
                                                 work.Done());
  }
  // A request that is answered at once.
  WorkLease Acquire(Task task, uint64_t incarnation) {
    const AwaitedWork work;
    EXPECT_FALSE(Request(task, incarnation, work).has_value());
    const MemberRequests::WorkAnswer answer = work.Await();
    EXPECT_TRUE(answer.ok() && answer->has_value());
    return **answer;
  }
  Member::State StateOf(Task task) const {
    for (const Member& member : coordinator_->reports()->GetStatus().members) {
      if (member.task == task) return member.state;
    }
    return Member::kAway;
  }
  // Waits until the answering thread has renewed the member's lease.
  void AwaitHeardOf(uint64_t incarnation) const {
    while (true) {
      for (const Member& member : coordinator_->reports()->GetStatus().members) {
        if (member.incarnation != incarnation) continue;
        if (member.last_heard == clock_.Monotonic()) return;
      }
      std::this_thread::yield();
    }
  }

  ManualClock clock_;
  std::optional<Coordinator> coordinator_;
  std::unique_ptr<Answerer> answerer_;
};

// It is told so while it waits for the coordinator's lock, too, which the test's calls hold.
TEST_F(MemberRequestsTest, WhoAnswersStopsWhenItIsTold) {
  Coordinator coordinator(OptionsOf("async"), &clock_);
  for (int i = 0; i < 5'000; ++i) {
    Answerer answerer(&coordinator);
    const absl::Time until = absl::Now() + absl::Microseconds(i % 100);
    do {
      EXPECT_TRUE(coordinator.reports()->GetStatus().members.empty());
    } while (absl::Now() < until);
  }
}

TEST_F(MemberRequestsTest, WorkThatIsThereIsGivenByTheCallItself) {
  Begin("async", 10);
  EXPECT_EQ(Acquire(kWorker0, 1).tickets[0].step, 0);
  const AwaitedWork stranger;
  EXPECT_FALSE(Request(kWorker0, 77, stranger).has_value());
  EXPECT_EQ(stranger.Await().status().code(), absl::StatusCode::kAborted);
}

TEST_F(MemberRequestsTest, TheModelComesWhenTrainingStarts) {
  Create(OptionsOf("async"));
  const AwaitedModel model;
  ASSERT_TRUE(coordinator_->requests()->RequestModel(kWorker0, TestId(1), kLong, model.Done()));
  EXPECT_FALSE(model.Came());
  Train(10);
  EXPECT_TRUE(model.Await().ok());
}

TEST_F(MemberRequestsTest, AJobThatFailsTellsThoseWhoWaitForTheModel) {
  Create(OptionsOf("async"));
  const AwaitedModel model;
  ASSERT_TRUE(coordinator_->requests()->RequestModel(kWorker0, TestId(1), kLong, model.Done()));
  coordinator_->control()->Fail(absl::InternalError("no disk"));
  EXPECT_EQ(model.Await().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MemberRequestsTest, ARequestWhoseTimeHasPassedGetsNothing) {
  Create(OptionsOf("async"));
  const AwaitedModel model;
  const AwaitedWork work;
  ASSERT_TRUE(
      coordinator_->requests()->RequestModel(kWorker0, TestId(1), absl::Seconds(1), model.Done()));
  ASSERT_TRUE(Request(kWorker1, 2, work, 1, absl::Seconds(1)).has_value());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(model.Await().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(GotNothing(work));
}

TEST_F(MemberRequestsTest, ACommittedRoundAnswersItsWorkers) {
  Begin("sync:2", 10);
  const WorkLease first = Acquire(kWorker0, 1);
  const WorkLease second = Acquire(kWorker1, 2);
  const AwaitedWork next0;
  const AwaitedWork next1;
  ASSERT_TRUE(coordinator_->requests()->RequestWork(kWorker0, TestId(1), Completed(first.id, 1),
                                                    kLong, 1, next0.Done()));
  ASSERT_TRUE(coordinator_->requests()->RequestWork(kWorker1, TestId(2), Completed(second.id, 1),
                                                    kLong, 1, next1.Done()));
  const auto round = coordinator_->rounds()->WaitForRound(kNoWait);
  ASSERT_TRUE(round.has_value());
  EXPECT_FALSE(next0.Came());
  EXPECT_FALSE(next1.Came());
  coordinator_->rounds()->RoundCommitted(*round);
  for (const AwaitedWork& next : {next0, next1}) {
    const MemberRequests::WorkAnswer answer = next.Await();
    ASSERT_TRUE(answer.ok() && answer->has_value());
    EXPECT_EQ((*answer)->tickets[0].step, 1);
  }
}

TEST_F(MemberRequestsTest, NoStepIsBegunWhileWorkersAreMissing) {
  for (const char* mode : {"async", "sync:2"}) {
    Coordinator::Options options = OptionsOf(mode);
    options.min_workers = 3;
    Create(options);
    Train(10);
    const AwaitedWork work;
    ASSERT_TRUE(Request(kWorker0, 1, work).has_value());
    EXPECT_EQ(coordinator_->reports()->GetStatus().missing_workers, 1);
    ASSERT_TRUE(
        coordinator_->members()->Register({Role::kChief, 0}, TestId(3), kHash, "host:3").ok());
    const MemberRequests::WorkAnswer answer = work.Await();
    EXPECT_TRUE(answer.ok() && answer->has_value());
    EXPECT_EQ(coordinator_->reports()->GetStatus().missing_workers, 0);
  }
}

TEST_F(MemberRequestsTest, ARoundUnderWayIsDoneByThoseWhoAreLeft) {
  Coordinator::Options options = OptionsOf("sync:2");
  options.min_workers = 2;
  Create(options);
  Train(10);
  const WorkLease first = Acquire(kWorker0, 1);
  ASSERT_EQ(coordinator_->members()->Leave(kWorker1, TestId(2), {}), absl::OkStatus());
  EXPECT_EQ(coordinator_->reports()->GetStatus().missing_workers, 1);
  const WorkLease second = Acquire(kWorker0, 1);
  for (const WorkLease& lease : {first, second}) {
    ASSERT_EQ(coordinator_->members()->Heartbeat(kWorker0, TestId(1), Completed(lease.id, 1)),
              absl::OkStatus());
  }
  const auto round = coordinator_->rounds()->WaitForRound(kNoWait);
  ASSERT_TRUE(round.has_value());
  coordinator_->rounds()->RoundCommitted(*round);
  const AwaitedWork next;
  EXPECT_TRUE(Request(kWorker0, 1, next).has_value());
  EXPECT_FALSE(next.Came());
}

TEST_F(MemberRequestsTest, AChiefThatTrainsHasItsShareOfARound) {
  Create(OptionsOf("sync:3"));
  constexpr Task kChief = {Role::kChief, 0};
  ASSERT_TRUE(coordinator_->members()->Register(kChief, TestId(3), kHash, "host:3").ok());
  Train(10);
  Acquire(kWorker0, 1);
  const AwaitedWork more;
  EXPECT_TRUE(Request(kWorker0, 1, more).has_value());
  Acquire(kWorker1, 2);
  Acquire(kChief, 3);
  EXPECT_FALSE(more.Came());
}

TEST_F(MemberRequestsTest, AMembershipThatEndsEndsItsRequest) {
  Begin("async", 1);
  Acquire(kWorker0, 1);
  const AwaitedWork work;
  ASSERT_TRUE(Request(kWorker1, 2, work).has_value());
  EXPECT_EQ(coordinator_->members()->Leave(kWorker1, TestId(2), {}), absl::OkStatus());
  EXPECT_EQ(work.Await().status().code(), absl::StatusCode::kAborted);
}

TEST_F(MemberRequestsTest, ANewerRequestEndsTheOneThatWaits) {
  Begin("async", 1);
  Acquire(kWorker0, 1);
  const AwaitedWork older;
  const AwaitedWork newer;
  ASSERT_TRUE(Request(kWorker1, 2, older, 1).has_value());
  ASSERT_TRUE(Request(kWorker1, 2, newer, 2).has_value());
  EXPECT_TRUE(GotNothing(older));
  EXPECT_FALSE(newer.Came());
  coordinator_->control()->SetPhase(JobPhase::kEvaluating);
  EXPECT_TRUE(GotNothing(newer));
}

TEST_F(MemberRequestsTest, ARequestThatComesAgainGetsTheLeaseThatTheFirstOneWasGranted) {
  Begin("async", 1);
  const WorkLease lease = Acquire(kWorker0, 1);
  const AwaitedWork first;
  const AwaitedWork again;
  ASSERT_TRUE(Request(kWorker1, 2, first, 1).has_value());
  EXPECT_EQ(coordinator_->members()->Leave(kWorker0, TestId(1), {}), absl::OkStatus());
  coordinator_->roster()->HandOn(coordinator_->roster()->TakeEnded());
  const MemberRequests::WorkAnswer granted = first.Await();
  ASSERT_TRUE(granted.ok() && granted->has_value());
  EXPECT_FALSE(Request(kWorker1, 2, again, 1).has_value());
  const MemberRequests::WorkAnswer repeated = again.Await();
  ASSERT_TRUE(repeated.ok() && repeated->has_value());
  EXPECT_EQ((*repeated)->id, (*granted)->id);
  EXPECT_NE((*granted)->id, lease.id);
}

TEST_F(MemberRequestsTest, AMemberIsHeardOfWhileItsRequestWaitsAndNoLonger) {
  Begin("async", 1);
  Acquire(kWorker0, 1);
  const AwaitedWork waits;
  const auto id = Request(kWorker1, 2, waits);
  ASSERT_TRUE(id.has_value());
  for (int second = 0; second < 20; ++second) {
    EXPECT_EQ(StateOf(kWorker1), Member::kAlive);
    clock_.Advance(absl::Seconds(1));
    AwaitHeardOf(2);
    coordinator_->roster()->ExpireLeases();
  }
  EXPECT_EQ(StateOf(kWorker0), Member::kLost) << "it has sent nothing";
  EXPECT_TRUE(coordinator_->requests()->Withdraw(*id));
  EXPECT_FALSE(coordinator_->requests()->Withdraw(*id));
  clock_.Advance(kLease);
  coordinator_->roster()->ExpireLeases();
  EXPECT_EQ(StateOf(kWorker1), Member::kLost);
  EXPECT_FALSE(waits.Came());
}

TEST_F(MemberRequestsTest, AThousandRequestsAreAnsweredByOneEvent) {
  Create(OptionsOf("async"));
  constexpr int kWorkers = 1000;
  std::vector<AwaitedWork> work(kWorkers);
  for (int worker = 0; worker < kWorkers; ++worker) {
    const Task task = {Role::kWorker, 10 + worker};
    const auto incarnation = static_cast<uint64_t>(100 + worker);
    ASSERT_TRUE(coordinator_->members()->Register(task, TestId(incarnation), kHash, "host:3").ok());
    ASSERT_TRUE(Request(task, incarnation, work[worker], 1).has_value());
  }
  Train(10 * kWorkers);
  std::set<int64_t> steps;
  for (const AwaitedWork& each : work) {
    const MemberRequests::WorkAnswer answer = each.Await();
    ASSERT_TRUE(answer.ok() && answer->has_value());
    steps.insert((*answer)->tickets[0].step);
  }
  EXPECT_EQ(steps.size(), kWorkers);
}

}  // namespace
}  // namespace keelson
