#include "core/model/spec/row_indexer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/random.h"
#include "core/model/spec/model_config_testing.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

Batch BatchOf(std::vector<std::vector<uint64_t>> ids) {
  Batch batch;
  for (std::vector<uint64_t>& each : ids) {
    batch.features.emplace_back().ids = std::move(each);
  }
  return batch;
}

// What the rows of a table must be, whatever the ids are.
void ExpectRowsOf(const TableFeatures& table, const Batch& batch, const BatchRows& rows) {
  const auto key = [&](uint64_t id) {
    return std::make_tuple(RowPartitionOf(MixId(id, table.salt)), id);
  };
  std::set<uint64_t> distinct;
  for (const size_t feature : table.features) {
    distinct.insert(batch.features[feature].ids.begin(), batch.features[feature].ids.end());
  }
  std::vector<uint64_t> expected(distinct.begin(), distinct.end());
  std::sort(expected.begin(), expected.end(),
            [&](uint64_t a, uint64_t b) { return key(a) < key(b); });
  ASSERT_EQ(rows.ids, expected);
  ASSERT_EQ(rows.positions.size(), batch.features.size());
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const std::vector<uint64_t>& ids = batch.features[f].ids;
    const bool used =
        std::find(table.features.begin(), table.features.end(), f) != table.features.end();
    ASSERT_EQ(rows.positions[f].size(), used ? ids.size() : 0) << f;
    for (size_t k = 0; k < rows.positions[f].size(); ++k) {
      ASSERT_EQ(rows.ids[rows.positions[f][k]], ids[k]) << f << " " << k;
    }
  }
}

TEST(RowIndexerTest, FindsDistinctIdsInRowOrderWhateverTheyAre) {
  const std::vector<TableFeatures> tables = {{TableSalt("a"), {0, 1}}, {TableSalt("b"), {1, 3}}};
  RowIndexer indexer(tables);
  uint64_t drawn = 0;
  const auto draw = [&] {
    const auto bits = Philox(1, 2, ++drawn);
    return uint64_t{bits[0]} << 32 | bits[1];
  };
  for (int kind = 0; kind < 7; ++kind) {
    SCOPED_TRACE(kind);
    std::vector<std::vector<uint64_t>> ids(4);
    for (size_t f = 0; f < ids.size(); ++f) {
      const size_t count = kind == 0 ? 0 : 3000 * f + 1;
      for (size_t k = 0; k < count; ++k) {
        switch (kind) {
          case 1:  // all 64 bits
            ids[f].push_back(draw());
            break;
          case 2:  // few small ones
            ids[f].push_back(draw() % 50);
            break;
          case 3:  // one in every record
            ids[f].push_back(kMost);
            break;
          case 4:  // in clusters far from each other
            ids[f].push_back((draw() % 3) << 62 | draw() % 1000);
            break;
          case 5:  // ascending, which leaves each in its own place of a hash table
            ids[f].push_back(kMost - k);
            break;
          default:  // at both ends, and in one cluster
            ids[f].push_back(k % 100 == 0 ? draw() : draw() % 10000);
        }
      }
    }
    Batch batch = BatchOf(std::move(ids));
    indexer.Index(&batch);
    ASSERT_EQ(batch.rows.size(), 2u);
    for (size_t t = 0; t < tables.size(); ++t) ExpectRowsOf(tables[t], batch, batch.rows[t]);
  }
}

TEST(RowIndexerTest, EveryIdIsOne) {
  const TableFeatures table = {TableSalt("t"), {0}};
  RowIndexer indexer({table});
  Batch batch = BatchOf({{kMost, 0, 1, uint64_t{1} << 63, kMost - 1, 0, kMost}});
  indexer.Index(&batch);
  EXPECT_EQ(batch.rows[0].ids.size(), 5u);
  ExpectRowsOf(table, batch, batch.rows[0]);
  batch.features[0].ids.clear();
  indexer.Index(&batch);
  EXPECT_THAT(batch.rows[0].ids, IsEmpty());
  EXPECT_THAT(batch.rows[0].positions, ElementsAre(IsEmpty()));
}

// Servers and other clients expect these ids in this order.
TEST(RowIndexerTest, TheOrderIsFixed) {
  RowIndexer indexer(std::vector<TableFeatures>{{0, {0}}});
  Batch batch = BatchOf({{5, 4, 3, 2, 1, 0, kMost}});
  indexer.Index(&batch);
  EXPECT_THAT(batch.rows[0].ids, ElementsAre(0, 3, 1, kMost, 5, 4, 2));
}

// A table of one feature, and one of both.
ModelSpec TwoTables() {
  const auto spec = InferModelSpec(ParseModel(R"pb(
    features {
      name: "user"
      id {}
    }
    features {
      name: "seen"
      bag {}
    }
    tables { name: "people" dim: 3 }
    tables { name: "things" dim: 3 }
    layers {
      name: "u"
      inputs: "user"
      embedding { table: "people" }
    }
    layers {
      name: "v"
      inputs: "user"
      embedding { table: "things" }
    }
    layers {
      name: "s"
      inputs: "seen"
      embedding_bag { table: "things" }
    }
    layers {
      name: "sum"
      add {}
      inputs: "u"
      inputs: "v"
      inputs: "s"
    }
    layers { dense { units: 1 } }
    loss { kind: SIGMOID_CROSS_ENTROPY })pb"));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ModelSpec());
}

TEST(TableFeaturesTest, AreThoseThatLayersLookUp) {
  const std::vector<TableFeatures> tables = TableFeaturesOf(TwoTables());
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(tables[0].features, ElementsAre(0));
  EXPECT_THAT(tables[1].features, ElementsAre(0, 1));
  EXPECT_EQ(tables[1].salt, TableSalt("things"));
}

Batch GoodBatch(const ModelSpec& spec) {
  Batch batch;
  Resize(2, spec.records, &batch);
  batch.features[0].ids = {~uint64_t{0}, 7};
  batch.features[1].ids = {1, 2, 1};
  batch.features[1].offsets = {0, 3, 3};
  batch.labels[0].data()[0] = 0;
  batch.labels[0].data()[1] = 1;
  RowIndexer(TableFeaturesOf(spec)).Index(&batch);
  return batch;
}

TEST(BatchRowsTest, ABatchHasTheRowsOfItsIds) {
  const ModelSpec spec = TwoTables();
  const Batch good = GoodBatch(spec);
  EXPECT_TRUE(CheckBatch(spec, good).ok()) << CheckBatch(spec, good);
  const auto expect = [&](const Batch& bad, const std::string& error) {
    EXPECT_EQ(CheckBatch(spec, bad), absl::InvalidArgumentError(error));
  };
  Batch bad = GoodBatch(spec);
  bad.rows.pop_back();
  expect(bad, "batch: tables with rows: expected 2, found 1");
  bad = GoodBatch(spec);
  bad.rows[1].positions[1].pop_back();
  expect(bad, "batch: seen in things: expected 3 positions of rows, found 2");
  bad = GoodBatch(spec);
  bad.rows[1].positions.clear();
  expect(bad, "batch: user in things: expected 2 positions of rows, found 0");
  bad = GoodBatch(spec);
  bad.rows[0].positions[0][1] = 2;
  expect(bad, "batch: user in people: expected a position of 2 rows, found 2");
  bad.rows[0].positions[0][1] = -1;
  expect(bad, "batch: user in people: expected a position of 2 rows, found -1");
}

}  // namespace
}  // namespace keelson
