#include "core/data/batcher.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "core/data/record_order.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The feature and the label of a record are its number.
class NumberDataset : public Dataset {
 public:
  explicit NumberDataset(int64_t num_records, int64_t bad_record = -1)
      : num_records_(num_records), bad_record_(bad_record) {}

  int64_t num_records() const override { return num_records_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const Shape shape({static_cast<int64_t>(records.size()), 1});
    if (!batch->features.empty() && batch->features[0].numbers.shape() == shape) ++reused_;
    *batch = MakeBatch(Tensor(shape), Tensor(Shape({shape.dim(0)})));
    for (size_t i = 0; i < records.size(); ++i) {
      if (records[i] == bad_record_) return absl::DataLossError("damaged record");
      const auto number = static_cast<float>(records[i]);
      batch->features[0].numbers.data()[i] = batch->labels[0].data()[i] = number;
    }
    return absl::OkStatus();
  }
  // Batches that came with memory of the right shape.
  int reused() const { return reused_; }

 private:
  const Shape shape_ = Shape({1});
  const int64_t num_records_;
  const int64_t bad_record_;
  mutable std::atomic<int> reused_ = 0;
};

// Steps of two records each, as many as the test allows.
class FakeSource : public TicketSource {
 public:
  explicit FakeSource(int64_t num_tickets, absl::Status end = absl::OkStatus(),
                      int64_t allowed = 1'000'000)
      : num_tickets_(num_tickets), end_(std::move(end)), allowed_(allowed) {}

  absl::StatusOr<std::optional<Ticket>> Next() override {
    MutexLock lock(&mu_);
    while (calls_ >= allowed_ && !cancelled_) changed_.Wait(&mu_);
    if (cancelled_) return absl::CancelledError("source cancelled");
    const int64_t step = calls_++;
    changed_.NotifyAll();
    if (step < num_tickets_)
      return Ticket{step, 3, 2 * step, 2 * step + 2, static_cast<uint64_t>(100 + step)};
    if (!end_.ok()) return end_;
    return std::nullopt;
  }

  void Allow(int64_t more) {
    MutexLock lock(&mu_);
    allowed_ += more;
    changed_.NotifyAll();
  }
  void Cancel() {
    MutexLock lock(&mu_);
    cancelled_ = true;
    changed_.NotifyAll();
  }
  void WaitForCalls(int64_t calls) {
    MutexLock lock(&mu_);
    while (calls_ < calls) changed_.Wait(&mu_);
  }
  int64_t calls() {
    MutexLock lock(&mu_);
    return calls_;
  }

 private:
  const int64_t num_tickets_;
  const absl::Status end_;
  Mutex mu_;
  CondVar changed_;
  int64_t allowed_ ABSL_GUARDED_BY(mu_);
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

// Hands out one ticket for ever.
class SameTicketSource : public TicketSource {
 public:
  explicit SameTicketSource(Ticket ticket) : ticket_(ticket) {}
  absl::StatusOr<std::optional<Ticket>> Next() override { return ticket_; }

 private:
  const Ticket ticket_;
};

TEST(BatcherTest, DeliversTheEpochsOrderTicketByTicket) {
  const NumberDataset dataset(20);
  FakeSource source(10);
  Batcher batcher(&dataset, &source, {.seed = 7});
  const RecordOrder order(20, 7, 3, false);
  for (int64_t step = 0; step < 10; ++step) {
    const auto prepared = batcher.Next();
    ASSERT_TRUE(prepared.ok() && prepared->has_value());
    const Ticket& ticket = (*prepared)->ticket;
    EXPECT_EQ(ticket.step, step);
    EXPECT_EQ(ticket.epoch, 3);
    EXPECT_EQ(ticket.lease_id, 100u + step);
    EXPECT_THAT((*prepared)->batch.labels[0].span(),
                ElementsAre(order.Record(2 * step), order.Record(2 * step + 1)));
  }
  for (int i = 0; i < 2; ++i) {
    const auto end = batcher.Next();
    ASSERT_TRUE(end.ok());
    EXPECT_FALSE(end->has_value());
  }
}

TEST(BatcherTest, IsReadyWithABatchAndAtTheEnd) {
  const NumberDataset dataset(20);
  FakeSource source(2, absl::OkStatus(), /*allowed=*/0);
  Batcher batcher(&dataset, &source, {.depth = 2});
  EXPECT_FALSE(batcher.Ready());
  source.Allow(1);
  ASSERT_TRUE(batcher.Next().ok());
  EXPECT_FALSE(batcher.Ready()) << "the source waits";
  source.Allow(2);
  ASSERT_TRUE(batcher.Next().ok());
  ASSERT_FALSE(batcher.Next()->has_value());
  EXPECT_TRUE(batcher.Ready()) << "there is nothing to wait for";
}

TEST(BatcherTest, SequentialKeepsTheFileOrder) {
  const NumberDataset dataset(4);
  FakeSource source(2);
  Batcher batcher(&dataset, &source, {.sequential = true});
  const auto prepared = batcher.Next();
  ASSERT_TRUE(prepared.ok() && prepared->has_value());
  EXPECT_THAT((*prepared)->batch.features[0].numbers.span(), ElementsAre(0, 1));
}

TEST(BatcherTest, PreparesAheadButHoldsNoMoreThanDepth) {
  const NumberDataset dataset(200);
  FakeSource source(100);
  Batcher batcher(&dataset, &source, {.depth = 3});
  source.WaitForCalls(3);
  for (int64_t taken = 0; taken < 100; ++taken) {
    EXPECT_LE(source.calls(), taken + 3);
    ASSERT_TRUE(batcher.Next().ok());
  }
}

TEST(BatcherTest, SourceErrorComesAfterTheBatchesBefore) {
  const NumberDataset dataset(20);
  FakeSource source(2, absl::UnavailableError("chief away"));
  Batcher batcher(&dataset, &source, {});
  for (int i = 0; i < 2; ++i) {
    const auto prepared = batcher.Next();
    ASSERT_TRUE(prepared.ok() && prepared->has_value());
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(batcher.Next().status(), absl::UnavailableError("chief away"));
}

TEST(BatcherTest, DatasetErrorComesAfterTheBatchesBefore) {
  const NumberDataset dataset(20, /*bad_record=*/5);
  FakeSource source(10);
  Batcher batcher(&dataset, &source, {.sequential = true});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(batcher.Next().ok());
  EXPECT_EQ(batcher.Next().status(), absl::DataLossError("damaged record"));
  EXPECT_EQ(source.calls(), 3);
}

TEST(BatcherTest, TicketOutsideTheDataset) {
  const NumberDataset dataset(20);
  for (const Ticket& ticket :
       {Ticket{4, 0, 18, 21}, Ticket{4, 0, -1, 3}, Ticket{4, 0, 5, 5}, Ticket{4, -1, 0, 2}}) {
    SameTicketSource source(ticket);
    Batcher batcher(&dataset, &source, {});
    const absl::Status status = batcher.Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("step 4: expected"));
  }
}

TEST(BatcherTest, RecycledMemoryIsUsedAgain) {
  const NumberDataset dataset(20);
  FakeSource source(2, absl::OkStatus(), /*allowed=*/1);
  Batcher batcher(&dataset, &source, {});
  auto first = batcher.Next();
  ASSERT_TRUE(first.ok() && first->has_value());
  batcher.Recycle(std::move((*first)->batch));
  source.Allow(2);
  ASSERT_TRUE(batcher.Next().ok());
  EXPECT_EQ(dataset.reused(), 1);
}

// The feature of a record is an id, half its number.
class IdDataset : public Dataset {
 public:
  int64_t num_records() const override { return 20; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    batch->features.resize(1);
    batch->features[0].ids.assign(records.begin(), records.end());
    for (uint64_t& id : batch->features[0].ids) id /= 2;
    return absl::OkStatus();
  }
};

TEST(BatcherTest, TellsTheRowsOfTheNextBatchBeforeItIsTaken) {
  const IdDataset dataset;
  FakeSource source(2, absl::OkStatus(), /*allowed=*/0);
  Batcher batcher(&dataset, &source, {.sequential = true, .depth = 3, .tables = {{0, {0}}}});
  std::vector<std::vector<uint64_t>> ids = {{77}};
  EXPECT_FALSE(batcher.CopyNextIds(&ids));
  EXPECT_THAT(ids, ElementsAre(ElementsAre(77)));
  source.Allow(3);
  source.WaitForCalls(3);
  for (uint64_t k = 0; k < 2; ++k) {
    ASSERT_TRUE(batcher.CopyNextIds(&ids));
    EXPECT_THAT(ids, ElementsAre(ElementsAre(k)));
    const auto prepared = batcher.Next();
    ASSERT_TRUE(prepared.ok() && prepared->has_value());
    EXPECT_EQ((*prepared)->batch.rows[0].ids, ids[0]);
    EXPECT_THAT((*prepared)->batch.rows[0].positions, ElementsAre(ElementsAre(0, 0)));
  }
  ASSERT_FALSE(batcher.Next()->has_value());
  EXPECT_FALSE(batcher.CopyNextIds(&ids));
  source.Cancel();
}

TEST(BatcherTest, CancelWakesAWaitingConsumer) {
  const NumberDataset dataset(20);
  FakeSource source(10, absl::OkStatus(), /*allowed=*/0);
  Batcher batcher(&dataset, &source, {});
  std::thread consumer(
      [&] { EXPECT_EQ(batcher.Next().status().code(), absl::StatusCode::kCancelled); });
  batcher.Cancel();
  consumer.join();
  source.Cancel();
}

TEST(BatcherTest, CancelDropsWhatIsQueued) {
  const NumberDataset dataset(20);
  FakeSource source(10);
  Batcher batcher(&dataset, &source, {});
  source.WaitForCalls(2);
  batcher.Cancel();
  batcher.Cancel();
  EXPECT_EQ(batcher.Next().status().code(), absl::StatusCode::kCancelled);
}

TEST(BatcherTest, DestructionWakesAFullBatcher) {
  const NumberDataset dataset(20);
  FakeSource source(10);
  Batcher batcher(&dataset, &source, {.depth = 1});
  source.WaitForCalls(1);
}

TEST(BatcherTest, ManyConsumersShareTheTickets) {
  constexpr int64_t kTickets = 500;
  const NumberDataset dataset(2 * kTickets);
  FakeSource source(kTickets);
  Batcher batcher(&dataset, &source, {});
  Mutex mu;
  std::multiset<int64_t> records;
  const auto consume = [&] {
    while (true) {
      auto prepared = batcher.Next();
      ASSERT_TRUE(prepared.ok());
      if (!prepared->has_value()) return;
      MutexLock lock(&mu);
      for (const float label : (*prepared)->batch.labels[0].span()) {
        records.insert(static_cast<int64_t>(label));
      }
      batcher.Recycle(std::move((*prepared)->batch));
    }
  };
  std::thread other(consume);
  consume();
  other.join();
  EXPECT_EQ(records.size(), 2u * kTickets);
  EXPECT_EQ(std::set<int64_t>(records.begin(), records.end()).size(), 2u * kTickets);
}

}  // namespace
}  // namespace keelson
