// A store with one table, for tests of which rows it has.
#ifndef KEELSON_PS_SERVER_UNITS_ONE_TABLE_TESTING_H_
#define KEELSON_PS_SERVER_UNITS_ONE_TABLE_TESTING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/table/row_testing.h"
#include "core/wire/byte_rope.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"
#include "ps_server/units/table_store.h"

namespace keelson {

inline std::vector<uint64_t> IdsFrom(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> ids;
  for (uint64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

// Pushes the same gradient for each number of a row, partition by partition. The push's number is
// `sequence`. `table`: its place in the store, in which it has the name "users".
inline void PushToAll(TableStore* store, uint32_t table, uint64_t sequence, int64_t step,
                      const std::vector<uint64_t>& ids,
                      absl::FunctionRef<float(uint64_t id)> gradient_of) {
  const IdList list = ListOf(ids, TableSalt("users"), {0, kRowPartitions});
  const auto dim = static_cast<size_t>(store->tables()[table].spec.dim);
  size_t begin = 0;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    const size_t n = list.counts[p];
    std::vector<float> gradients;
    for (size_t i = 0; i < n; ++i) {
      gradients.insert(gradients.end(), dim, gradient_of(list.ids[begin + i]));
    }
    ByteRope rope;
    rope.AppendBorrowed(gradients.data(), gradients.size() * sizeof(float));
    ByteCursor cursor(rope);
    const RowUpdate update = {table, absl::MakeConstSpan(list.ids).subspan(begin, n),
                              WireFormat::kFloat32, &cursor};
    EXPECT_TRUE(store->Partition(p)->Apply({1, sequence}, store->UpdateAt(step, 1), {update}));
    EXPECT_EQ(cursor.remaining(), 0);
    begin += n;
  }
}

inline void PushToAll(TableStore* store, uint32_t table, uint64_t sequence, int64_t step,
                      const std::vector<uint64_t>& ids, float gradient) {
  PushToAll(store, table, sequence, step, ids, [gradient](uint64_t) { return gradient; });
}

// The table "users" has rows of one number, which starts at 0; a push takes its gradient off it.
class OneTableTest : public testing::Test {
 protected:
  // `limits` has what bounds the rows; the rest of it is set here.
  explicit OneTableTest(TableSpec limits, const std::string& optimizer = "sgd {}")
      : tables_({std::move(limits)}) {
    tables_[0].name = "users";
    tables_[0].dim = 1;
    optimizers_ = std::make_unique<TableOptimizers>(
        *TableOptimizers::Create({OptimizerFromText(optimizer), {}, 1}, tables_));
    v1::LearningRateConfig rate;
    rate.set_base(1);
    learning_rate_ = std::make_unique<LearningRateSchedule>(*LearningRateSchedule::Create(rate, 0));
    store_ = *TableStore::Create({tables_, {0, kRowPartitions}, kTestSeed, 0}, optimizers_.get(),
                                 learning_rate_.get(), &sequences_);
  }

  void Push(int64_t step, const std::vector<uint64_t>& ids, float gradient = -1) {
    PushToAll(store_.get(), 0, ++sequence_, step, ids, gradient);
  }
  void PushEach(int64_t step, const std::vector<uint64_t>& ids,
                absl::FunctionRef<float(uint64_t id)> gradient_of) {
    PushToAll(store_.get(), 0, ++sequence_, step, ids, gradient_of);
  }
  void PushAndSweep(int64_t step, const std::vector<uint64_t>& ids) {
    Push(step, ids);
    store_->Sweep(ids.size());
  }

  // Those of the ids that have a row.
  std::map<uint64_t, float> Read(const std::vector<uint64_t>& ids) const {
    const IdList list = ListOf(ids, TableSalt("users"), {0, kRowPartitions});
    RowAnswer answer;
    answer.presence.resize((ids.size() + 7) / 8);
    size_t begin = 0;
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      const absl::Span<const uint64_t> part =
          absl::MakeConstSpan(list.ids).subspan(begin, list.counts[p]);
      store_->Partition(p)->Read(store_->ReadNow(),
                                 {{0, part, WireFormat::kFloat32, begin, &answer}});
      begin += part.size();
    }
    std::map<uint64_t, float> rows;
    const auto* value = reinterpret_cast<const float*>(answer.rows.data());
    for (size_t i = 0; i < list.ids.size(); ++i) {
      if ((answer.presence[i / 8] >> (i % 8) & 1) != 0) rows[list.ids[i]] = *value++;
    }
    EXPECT_EQ(rows.size(), answer.num_rows);
    return rows;
  }

  TableSize Size() const { return store_->Sizes()[0]; }

  std::vector<TableSpec> tables_;
  std::unique_ptr<TableOptimizers> optimizers_;
  std::unique_ptr<LearningRateSchedule> learning_rate_;
  AppliedSequences sequences_;
  std::unique_ptr<TableStore> store_;
  uint64_t sequence_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_ONE_TABLE_TESTING_H_
