// Rounds against the same rules written plainly, over random histories.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "chief/coordination/sync_rounds.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

// Looks at all tickets for each question.
class PlainRounds {
 public:
  PlainRounds(int64_t wanted, int64_t tickets) : wanted_(wanted), tickets_(tickets) {}

  void Restart() {
    for (Ticket& ticket : tickets_) ticket = {};
    ++attempt_;
  }
  // The position of the ticket that is granted.
  std::optional<size_t> Grant(uint64_t worker, uint64_t lease, int64_t alive) {
    const int64_t workers = std::max<int64_t>(alive, 1);
    const int64_t wanted = std::clamp(workers, wanted_, std::max(wanted_, size()));
    const int64_t share = (wanted + workers - 1) / workers;
    const auto own = std::count_if(tickets_.begin(), tickets_.end(), [&](const Ticket& ticket) {
      return ticket.state > 0 && ticket.worker == worker;
    });
    if (Count(2) >= wanted_ || Count(1) >= wanted || own >= share) return std::nullopt;
    for (size_t i = 0; i < tickets_.size(); ++i) {
      if (tickets_[i].state > 0) continue;
      tickets_[i] = {size() > wanted_ ? 1 : 2, worker, lease};
      return i;
    }
    return std::nullopt;
  }
  bool Admit(uint64_t worker, uint64_t lease, uint32_t attempt) {
    Ticket* const ticket = Find(worker, lease);
    if (ticket == nullptr || attempt != attempt_) return false;
    if (ticket->state == 1 && Count(2) < wanted_) ticket->state = 2;
    return ticket->state >= 2;
  }
  bool Stage(uint64_t worker, uint64_t lease) {
    Ticket* const ticket = Find(worker, lease);
    if (ticket == nullptr || ticket->state < 2) return false;
    ticket->state = 3;
    return true;
  }
  bool Refuse(uint64_t worker, uint64_t lease, uint32_t attempt) {
    const Ticket* const ticket = Find(worker, lease);
    return ticket != nullptr && attempt == attempt_ && ticket->state == 2;
  }
  bool Lose(uint64_t worker) {
    bool whole = true;
    for (Ticket& ticket : tickets_) {
      if (ticket.worker != worker) continue;
      if (ticket.state == 2) whole = false;
      if (ticket.state == 1) ticket = {};
    }
    return whole;
  }
  bool Holds(uint64_t worker, uint64_t lease) { return Find(worker, lease) != nullptr; }
  bool AnyGranted() const { return Count(1) > 0; }
  std::set<uint64_t> Owing() const {
    std::set<uint64_t> workers;
    for (const Ticket& ticket : tickets_) {
      if (ticket.state == 2 || (ticket.state == 1 && Count(2) < wanted_)) {
        workers.insert(ticket.worker);
      }
    }
    return workers;
  }
  std::vector<size_t> Staged() const {
    std::vector<size_t> staged;
    for (size_t i = 0; i < tickets_.size(); ++i) {
      if (tickets_[i].state == 3) staged.push_back(i);
    }
    return staged;
  }
  int64_t wanted() const { return wanted_; }
  uint32_t attempt() const { return attempt_; }

 private:
  struct Ticket {
    int state = 0;  // waiting, held, admitted, staged
    uint64_t worker = 0;
    uint64_t lease = 0;
  };

  int64_t size() const { return static_cast<int64_t>(tickets_.size()); }
  int64_t Count(int state) const {
    return std::count_if(tickets_.begin(), tickets_.end(),
                         [&](const Ticket& ticket) { return ticket.state >= state; });
  }
  Ticket* Find(uint64_t worker, uint64_t lease) {
    for (Ticket& ticket : tickets_) {
      if (ticket.state > 0 && ticket.worker == worker && ticket.lease == lease) return &ticket;
    }
    return nullptr;
  }

  const int64_t wanted_;
  uint32_t attempt_ = 1;
  std::vector<Ticket> tickets_;
};

RecordRange BatchOf(size_t ticket) {
  const auto begin = static_cast<int64_t>(10 * ticket);
  return {0, begin, begin + 10};
}

void CompareStates(const SyncRounds& rounds, const PlainRounds& plain) {
  EXPECT_EQ(rounds.AnyGranted(), plain.AnyGranted());
  std::set<uint64_t> owing;
  rounds.AddOwing(&owing);
  EXPECT_EQ(owing, plain.Owing());
  std::vector<RecordRange> staged;
  for (const size_t ticket : plain.Staged()) staged.push_back(BatchOf(ticket));
  EXPECT_EQ(rounds.StagedBatches(), staged);
  EXPECT_EQ(rounds.Staged().has_value(), static_cast<int64_t>(staged.size()) >= plain.wanted());
}

// One round of `tickets`, of which `wanted` count, over many random calls.
void Compare(int64_t wanted, size_t tickets, std::mt19937* random) {
  const auto below = [random](uint64_t limit) { return (*random)() % limit; };
  SyncRounds rounds(wanted);
  PlainRounds plain(wanted, static_cast<int64_t>(tickets));
  std::vector<RecordRange> batches;
  for (size_t ticket = 0; ticket < tickets; ++ticket) batches.push_back(BatchOf(ticket));
  rounds.Open(7, plain.attempt(), batches);
  uint64_t newest_lease = 0;
  for (int call = 0; call < 60; ++call) {
    const uint64_t worker = 1 + below(4);
    const uint64_t lease = 1 + below(newest_lease + 1);
    const auto attempt = static_cast<uint32_t>(plain.attempt() - below(2));
    switch (below(7)) {
      case 0:
      case 1: {
        const auto alive = static_cast<int64_t>(below(6));
        ++newest_lease;
        const std::optional<RecordRange> granted = rounds.Grant(worker, newest_lease, alive);
        const std::optional<size_t> expected = plain.Grant(worker, newest_lease, alive);
        ASSERT_EQ(granted.has_value(), expected.has_value());
        if (granted.has_value()) {
          EXPECT_EQ(*granted, BatchOf(*expected));
        }
        break;
      }
      case 2:
        EXPECT_EQ(rounds.Admit(worker, lease, attempt), plain.Admit(worker, lease, attempt));
        break;
      case 3:
        EXPECT_EQ(rounds.Stage(worker, lease), plain.Stage(worker, lease));
        break;
      case 4:
        EXPECT_EQ(rounds.Refuse(worker, lease, attempt), plain.Refuse(worker, lease, attempt));
        break;
      case 5:
        EXPECT_EQ(rounds.Holds(worker, lease), plain.Holds(worker, lease));
        break;
      case 6: {
        if (below(4) != 0) break;
        const bool whole = rounds.Lose(worker);
        EXPECT_EQ(whole, plain.Lose(worker));
        if (whole) break;
        plain.Restart();
        rounds.Restart(plain.attempt());
        break;
      }
    }
    CompareStates(rounds, plain);
  }
  rounds.Close();
  EXPECT_FALSE(rounds.open());
  EXPECT_FALSE(rounds.AnyGranted());
  EXPECT_FALSE(rounds.Holds(1, 1));
}

TEST(SyncRoundsRandomTest, EveryAnswerIsThatOfTheRulesWrittenPlainly) {
  std::mt19937 random(20260101);
  for (int round = 0; round < 500; ++round) {
    const auto wanted = static_cast<int64_t>(1 + random() % 4);
    const size_t tickets = static_cast<size_t>(wanted) + random() % 3;
    Compare(wanted, tickets, &random);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace keelson
