#include "chief/servers/round_commits.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::Duration kCommitPause = absl::Milliseconds(50);

// Whether the call may succeed when it is repeated.
bool MayComeBack(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

RoundCommits::RoundCommits(ServerCalls* calls, Replicas* replicas, const Clock* clock)
    : calls_(calls),
      replicas_(replicas),
      clock_(clock),
      under_way_(calls->size()),
      pool_(calls->size() - 1) {}

RoundCommits::Order RoundCommits::Doubtful() const {
  Order servers;
  for (size_t s = 0; s < calls_->size(); ++s) {
    (calls_->contacts().MayLackPushes(s) ? servers.first : servers.second).push_back(s);
  }
  return servers;
}

std::vector<absl::Status> RoundCommits::CommitAtEach(const std::vector<size_t>& at,
                                                     const Round& round, bool only_ask,
                                                     const StopSignal& stop,
                                                     absl::FunctionRef<void()> committed) {
  std::vector<absl::Status> statuses(at.size());
  v1::CommitRoundRequest request = RequestOf(round);
  request.set_only_ask(only_ask);
  MutexLock lock(&mu_);
  pool_.RunAll(at.size(), [&](size_t i) {
    const uint64_t makings = calls_->contacts().makings(at[i]);
    statuses[i] = only_ask ? Call(at[i], request, absl::ZeroDuration(), stop)
                           : CommitWhereServed(at[i], request, stop);
    if (!statuses[i].ok() || only_ask) return;
    calls_->contacts().NoteWhole(at[i], makings);
    NoteCommitted(round.step);
    committed();
  });
  return statuses;
}

absl::Status RoundCommits::Commit(const Round& round, const StopSignal& stop,
                                  absl::FunctionRef<void()> committed) {
  while (true) {
    {
      const RoundGate::Round turn(&gate_);
      const absl::StatusOr<Order> order = Ready(round, stop);
      if (order.ok()) return CommitEverywhere(*order, round, stop, committed);
      if (!MayComeBack(order.status())) return order.status();
    }
    // What is waited for may be the move of a shard, which has its turn now.
    if (stop.WaitFor(kCommitPause)) return absl::CancelledError("while a step was committed");
  }
}

absl::StatusOr<RoundCommits::Order> RoundCommits::Ready(const Round& round,
                                                        const StopSignal& stop) {
  // From the first commit on the replicas have it.
  const bool begun = committed_ >= round.step;
  if (!begun) RETURN_IF_ERROR(replicas_->Fetch(RequestOf(round)));
  Order order = Doubtful();
  // Alone it need not be asked.
  if (!begun && order.first.size() > 1) {
    RETURN_IF_ERROR(
        ServerCalls::FirstError(CommitAtEach(order.first, round, /*only_ask=*/true, stop, [] {})));
  }
  return order;
}

absl::Status RoundCommits::CommitEverywhere(const Order& order, const Round& round,
                                            const StopSignal& stop,
                                            absl::FunctionRef<void()> committed) {
  std::atomic<bool> told = false;
  const auto tell_once = [&] {
    if (!told.exchange(true)) committed();
  };
  std::vector<std::pair<size_t, absl::Status>> refusals;
  for (const std::vector<size_t>& at : {order.first, order.second}) {
    const std::vector<absl::Status> answers =
        CommitAtEach(at, round, /*only_ask=*/false, stop, tell_once);
    for (size_t i = 0; i < at.size(); ++i) {
      if (absl::IsFailedPrecondition(answers[i])) {
        refusals.emplace_back(at[i], answers[i]);
      } else {
        RETURN_IF_ERROR(answers[i]);
      }
    }
    // It can be begun again.
    if (!refusals.empty() && committed_ < round.step) return refusals.front().second;
  }
  for (const auto& [s, refusal] : refusals) {
    RETURN_IF_ERROR(LoseAt(s, round, refusal.message(), absl::InfiniteDuration(), stop));
  }
  tell_once();
  return absl::OkStatus();
}

absl::Status RoundCommits::CommitWhereServed(size_t s, const v1::CommitRoundRequest& request,
                                             const StopSignal& stop) {
  SetUnderWay(s, request);
  const absl::Cleanup end = [this, s] { SetUnderWay(s, std::nullopt); };
  while (true) {
    const size_t place = calls_->serving(s);
    RETURN_IF_ERROR(Call(s, request, absl::InfiniteDuration(), stop));
    const absl::Status replicated = replicas_->Commit(s, request);
    if (!replicated.ok()) {
      // If the host has been lost meanwhile, the replica may be the only copy.
      RETURN_IF_ERROR(Call(s, request, absl::InfiniteDuration(), stop));
      if (calls_->serving(s) == place) replicas_->GiveUp(s, replicated);
    }
    // A replica that has taken its shard's place meanwhile has not committed the round yet.
    if (calls_->serving(s) == place) return absl::OkStatus();
  }
}

void RoundCommits::SetUnderWay(size_t s, const std::optional<v1::CommitRoundRequest>& request) {
  MutexLock lock(&under_way_mu_);
  under_way_[s] = request;
}

void RoundCommits::CommitWhereMoved(size_t s) {
  std::optional<v1::CommitRoundRequest> request;
  {
    MutexLock lock(&under_way_mu_);
    request = under_way_[s];
  }
  // What begins from now on calls the new place.
  if (!request.has_value()) return;
  request->set_store_id(calls_->contacts().store_id(s));
  v1::CommitRoundResponse response;
  // Commit, which calls this place next, deals with errors.
  if (calls_->service(s)->CommitRound(*request, &response).ok()) NoteCommitted(request->round());
}

v1::CommitRoundRequest RoundCommits::RequestOf(const Round& round) const {
  v1::CommitRoundRequest request;
  *request.mutable_header() = calls_->Header();
  request.set_round(round.step);
  request.set_attempt(round.attempt);
  request.set_contributions(round.contributions);
  return request;
}

absl::Status RoundCommits::CommitAt(size_t s, const Round& round, absl::Duration patience,
                                    const StopSignal& stop) {
  return Call(s, RequestOf(round), patience, stop);
}

absl::Status RoundCommits::LoseAt(size_t s, const Round& round, absl::string_view why,
                                  absl::Duration patience, const StopSignal& stop) {
  LogWarning("step ", round.step, " is lost at ", calls_->name(s), ": ", why);
  v1::CommitRoundRequest request = RequestOf(round);
  request.set_lost(true);
  return Call(s, request, patience, stop);
}

void RoundCommits::NoteCommitted(int64_t round) {
  int64_t known = committed_;
  while (known < round && !committed_.compare_exchange_weak(known, round)) {
  }
}

absl::Status RoundCommits::Call(size_t s, const v1::CommitRoundRequest& request,
                                absl::Duration patience, const StopSignal& stop) {
  const absl::Duration until = clock_->Monotonic() + patience;
  while (true) {
    v1::CommitRoundRequest addressed = request;
    addressed.set_store_id(calls_->contacts().store_id(s));
    v1::CommitRoundResponse response;
    const absl::Status status = calls_->service(s)->CommitRound(addressed, &response);
    if (!MayComeBack(status) || clock_->Monotonic() >= until) return calls_->Named(s, status);
    if (stop.WaitFor(kCommitPause)) return absl::CancelledError("while a step was committed");
  }
}

}  // namespace keelson
