#include "core/cluster/placement.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

VariableSpec Variable(const std::string& name, std::initializer_list<int64_t> dims) {
  return {name, Shape(dims), {Initializer::Kind::kUniform, -1, 1}};
}

std::vector<VariableSpec> Mlp() {
  return {Variable("dense_1/kernel", {784, 512}), Variable("dense_1/bias", {512}),
          Variable("dense_2/kernel", {512, 512}), Variable("dense_2/bias", {512}),
          Variable("dense_3/kernel", {512, 10}),  Variable("dense_3/bias", {10})};
}

std::vector<VariableSpec> Cnn() {
  return {Variable("conv2d_1/kernel", {5, 5, 1, 32}),  Variable("conv2d_1/bias", {32}),
          Variable("conv2d_2/kernel", {5, 5, 32, 64}), Variable("conv2d_2/bias", {64}),
          Variable("dense_1/kernel", {1024, 512}),     Variable("dense_1/bias", {512}),
          Variable("dense_2/kernel", {512, 10}),       Variable("dense_2/bias", {10})};
}

std::vector<VariableSpec> RandomModel(std::mt19937* random) {
  auto pick = [random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  std::vector<VariableSpec> variables;
  const int64_t count = pick(1, 40);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("v", i);
    switch (pick(0, 3)) {
      case 0:
        variables.push_back(Variable(name, {}));
        break;
      case 1:
        variables.push_back(Variable(name, {pick(1, 20000)}));
        break;
      case 2:
        variables.push_back(Variable(name, {pick(1, 4000), pick(1, 2000)}));
        break;
      default:
        variables.push_back(Variable(name, {pick(1, 7), pick(1, 7), pick(1, 64), pick(1, 64)}));
    }
  }
  return variables;
}

int64_t TotalBytes(const Placement& placement) {
  int64_t total = 0;
  for (const VariableSpec& variable : placement.variables()) total += variable.bytes();
  return total;
}

double MaxOverMean(const Placement& placement) {
  int64_t max = 0;
  for (size_t shard = 0; shard < placement.num_shards(); ++shard) {
    max = std::max(max, placement.ShardBytes(shard));
  }
  return static_cast<double>(max) * placement.num_shards() /
         static_cast<double>(TotalBytes(placement));
}

// Bytes of the largest thing that cannot be divided.
int64_t LargestGrain(const Placement& placement) {
  int64_t grain = 0;
  for (const VariableSpec& variable : placement.variables()) {
    const bool whole = variable.bytes() <= Placement::kMaxWholeBytes;
    grain = std::max(grain, whole ? variable.bytes() : variable.bytes() / variable.shape.rows());
  }
  return grain;
}

// Rows once and in order, small variables whole, one partition per shard.
void ExpectWellFormed(const Placement& placement) {
  const auto back = Placement::FromProto(placement.ToProto());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->partitions(), placement.partitions());
  EXPECT_EQ(back->Fingerprint(), placement.Fingerprint());
  for (size_t p = 0; p < placement.partitions().size(); ++p) {
    const VariableSpec& variable = placement.VariableOf(p);
    if (variable.bytes() > Placement::kMaxWholeBytes) continue;
    EXPECT_EQ(placement.PartitionElements(p), variable.shape.num_elements());
  }
}

TEST(PlacementTest, OneShardHoldsEveryVariableWhole) {
  const Placement placement = Placement::Compute(Mlp(), 1);
  EXPECT_EQ(placement.partitions().size(), 6u);
  EXPECT_EQ(placement.ShardBytes(0), TotalBytes(placement));
  ExpectWellFormed(placement);
}

TEST(PlacementTest, MlpAndCnnAreBalanced) {
  for (const auto& model : {Mlp(), Cnn()}) {
    for (int shards = 1; shards <= 8; ++shards) {
      const Placement placement = Placement::Compute(model, shards);
      ExpectWellFormed(placement);
      if (TotalBytes(placement) < shards * (int64_t{1} << 20)) continue;
      EXPECT_LE(MaxOverMean(placement), 1.05) << placement.ToTable();
    }
  }
}

TEST(PlacementTest, TwoShardsOfTheMlp) {
  const Placement placement = Placement::Compute(Mlp(), 2);
  // By name: dense_1/bias, dense_1/kernel, dense_2/bias, dense_2/kernel, dense_3/...
  EXPECT_THAT(placement.partitions(), ElementsAre(Partition{0, 1, 0, 512}, Partition{1, 0, 0, 655},
                                                  Partition{1, 1, 655, 784},
                                                  Partition{2, 1, 0, 512}, Partition{3, 1, 0, 512},
                                                  Partition{4, 1, 0, 10}, Partition{5, 1, 0, 512}));
}

TEST(PlacementTest, RandomModelsAreBalancedAndWellFormed) {
  std::mt19937 random(1);
  int balanced = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const auto model = RandomModel(&random);
    const int shards = 1 + trial % 8;
    const Placement placement = Placement::Compute(model, shards);
    ExpectWellFormed(placement);
    const int64_t mean = TotalBytes(placement) / shards;
    if (mean < (int64_t{1} << 20) || LargestGrain(placement) > mean / 32) continue;
    ++balanced;
    EXPECT_LE(MaxOverMean(placement), 1.05) << placement.ToTable();
  }
  EXPECT_GT(balanced, 200);
}

TEST(PlacementTest, DoesNotDependOnTheOrderOfTheInput) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 50; ++trial) {
    auto model = RandomModel(&random);
    const Placement first = Placement::Compute(model, 3);
    std::shuffle(model.begin(), model.end(), random);
    const Placement second = Placement::Compute(model, 3);
    EXPECT_EQ(first.partitions(), second.partitions());
    EXPECT_EQ(first.Fingerprint(), second.Fingerprint());
  }
}

TEST(PlacementTest, AVariableOfOneRowIsNotSplit) {
  const Placement placement = Placement::Compute({Variable("w", {1, 1000000})}, 4);
  EXPECT_THAT(placement.partitions(), ElementsAre(Partition{0, 0, 0, 1}));
  ExpectWellFormed(placement);
}

TEST(PlacementTest, CoarseRowsGoToTheLeastLoadedShard) {
  const Placement placement =
      Placement::Compute({Variable("a", {1, 1000000}), Variable("b", {1, 900000}),
                          Variable("c", {1, 800000}), Variable("d", {1, 100000})},
                         3);
  EXPECT_EQ(placement.ShardBytes(0), 4000000);
  EXPECT_EQ(placement.ShardBytes(1), 3600000);
  EXPECT_EQ(placement.ShardBytes(2), 3600000);
}

TEST(PlacementTest, ScalarsAndMoreShardsThanVariables) {
  const Placement placement = Placement::Compute({Variable("a", {}), Variable("b", {})}, 5);
  EXPECT_THAT(placement.partitions(), ElementsAre(Partition{0, 0, 0, 1}, Partition{1, 1, 0, 1}));
  EXPECT_EQ(placement.PartitionElements(0), 1);
  EXPECT_TRUE(placement.PartitionsOf(4).empty());
  EXPECT_EQ(placement.ShardBytes(4), 0);
}

TEST(PlacementTest, NoVariables) {
  const Placement placement = Placement::Compute({}, 2);
  EXPECT_TRUE(placement.partitions().empty());
  EXPECT_THAT(placement.ToTable(), HasSubstr("bytes per shard: 0 0; max/mean 1.000"));
}

TEST(PlacementTest, AddressesElementsAndBlocks) {
  const Placement placement = Placement::Compute(Mlp(), 2, /*block_elements=*/100000);
  const size_t p = 2;  // dense_1/kernel, rows 655..783
  EXPECT_EQ(placement.VariableOf(p).name, "dense_1/kernel");
  EXPECT_EQ(placement.PartitionFirstElement(p), 655 * 512);
  EXPECT_EQ(placement.PartitionElements(1), 655 * 512);
  EXPECT_EQ(placement.NumBlocks(1), 4);
  EXPECT_EQ(placement.BlockElements(1, 0), 100000);
  EXPECT_EQ(placement.BlockElements(1, 3), 655 * 512 - 300000);
  EXPECT_EQ(placement.NumBlocks(p), 1);
  EXPECT_EQ(placement.BlockElements(p, 0), 129 * 512);
  EXPECT_THAT(placement.PartitionsOf(0), ElementsAre(1));
  EXPECT_EQ(placement.ShardBytes(0), 655 * 512 * 4);
}

TEST(PlacementTest, PartitionThatFillsItsBlocksExactly) {
  const Placement placement = Placement::Compute({Variable("w", {8})}, 1, 4);
  EXPECT_EQ(placement.NumBlocks(0), 2);
  EXPECT_EQ(placement.BlockElements(0, 1), 4);
}

TEST(PlacementTest, FingerprintFollowsEveryPart) {
  const uint64_t base = Placement::Compute(Mlp(), 2).Fingerprint();
  EXPECT_EQ(Placement::Compute(Mlp(), 2).Fingerprint(), base);
  EXPECT_NE(Placement::Compute(Mlp(), 3).Fingerprint(), base);
  EXPECT_NE(Placement::Compute(Mlp(), 2, 1000).Fingerprint(), base);
  auto renamed = Mlp();
  renamed[5].name = "other";
  EXPECT_NE(Placement::Compute(renamed, 2).Fingerprint(), base);
  auto other_initializer = Mlp();
  other_initializer[0].initializer.b = 2;
  EXPECT_NE(Placement::Compute(other_initializer, 2).Fingerprint(), base);
  auto average = Mlp();
  average[0].average_decay = 0;
  EXPECT_NE(Placement::Compute(average, 2).Fingerprint(), base);
}

TEST(PlacementTest, Table) {
  VariableSpec average = Variable("b", {10});
  average.average_decay = 0.99f;
  const std::string table = Placement::Compute({Variable("w", {20000, 2}), average}, 2).ToTable();
  EXPECT_EQ(table,
            "variable  shape               rows  shard  bytes  update\n"
            "b         [10]                0..9      0     40  average 0.99\n"
            "w         [20000, 2]      0..10002      1  80024  optimizer\n"
            "w         [20000, 2]  10003..19999      0  79976  optimizer\n"
            "bytes per shard: 80016 80024; max/mean 1.000\n");
}

TEST(PlacementTest, WithoutTablesItIsWhatItWasBeforeThereWereAny) {
  const Placement placement = Placement::Compute({Variable("w", {8})}, 1);
  EXPECT_EQ(placement.row_partitions(), 0u);
  EXPECT_EQ(placement.RowPartitionsOf(0), (RowPartitionRun{0, 0}));
  EXPECT_EQ(placement.ToProto().SerializeAsString(),
            std::string(
                "\x08\x01\x12\x14\x0a\x01w\x12\x01\x08\x1a\x0c\x12\x0a\x0d\0\0\x80\xbf\x15\0\0\x80?"
                "\x1a\x02 \x08 \x80\x80\x10",
                32));
}

TEST(PlacementTest, TablesAreDividedEvenlyAndLeaveTheVariablesWhereTheyAre) {
  const std::vector<TableSpec> tables = {{"users", 16, {Initializer::Kind::kNormal, 0, 1}},
                                         {"items", 1, {}}};
  for (const size_t shards : {1, 2, 3, 7, 256, 300}) {
    const Placement placement = Placement::Compute(Mlp(), shards, 1000, tables);
    EXPECT_EQ(placement.partitions(), Placement::Compute(Mlp(), shards, 1000).partitions());
    EXPECT_EQ(placement.tables().at(0).name, "items");
    EXPECT_EQ(placement.row_partitions(), 256u);
    ExpectWellFormed(placement);
    uint32_t next = 0;
    for (size_t s = 0; s < shards; ++s) {
      const RowPartitionRun run = placement.RowPartitionsOf(s);
      EXPECT_EQ(run.first, next);
      EXPECT_LE(run.count, 256 / shards + 1);
      EXPECT_GE(run.count, 256 / shards);
      for (; next < run.first + run.count; ++next) {
        EXPECT_EQ(placement.ShardOfRowPartition(next), s) << next << " of " << shards;
      }
    }
    EXPECT_EQ(next, 256u);
  }
}

// Variables whose names begin with "dense" on two workers' shards, and the others on two servers'.
Placement InGroups(size_t servers, size_t workers, std::vector<TableSpec> tables = {}) {
  const ShardGroups groups = {servers, workers,
                              [](absl::string_view name) { return name.substr(0, 5) == "dense"; }};
  return Placement::ComputeIn(groups, Cnn(), 1000, std::move(tables));
}

TEST(PlacementTest, VariablesStayOnTheShardsOfTheirGroup) {
  const std::vector<TableSpec> tables = {{"users", 16, {}}};
  const Placement placement = InGroups(2, 2, tables);
  ExpectWellFormed(placement);
  EXPECT_EQ(placement.num_shards(), 4u);
  EXPECT_EQ(placement.table_shards(), 2u);
  for (size_t p = 0; p < placement.partitions().size(); ++p) {
    const bool dense = placement.VariableOf(p).name.substr(0, 5) == "dense";
    EXPECT_EQ(placement.partition(p).shard >= 2, dense) << placement.VariableOf(p).name;
  }
  for (size_t s = 0; s < 4; ++s) EXPECT_GT(placement.ShardBytes(s), 0) << s;
  EXPECT_EQ(placement.RowPartitionsOf(0), (RowPartitionRun{0, 128}));
  EXPECT_EQ(placement.RowPartitionsOf(1), (RowPartitionRun{128, 128}));
  EXPECT_EQ(placement.RowPartitionsOf(2), (RowPartitionRun{0, 0}));
  EXPECT_EQ(placement.ShardOfRowPartition(255), 1u);
  const auto read = Placement::FromProto(placement.ToProto());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Fingerprint(), placement.Fingerprint());
  EXPECT_EQ(read->table_shards(), 2u);
}

TEST(PlacementTest, AGroupAloneHasEverything) {
  for (const Placement& alone : {InGroups(3, 0), InGroups(0, 3)}) {
    EXPECT_EQ(alone.Fingerprint(), Placement::Compute(Cnn(), 3, 1000).Fingerprint());
  }
}

TEST(PlacementTest, ShardsOfTablesAreSomeOfTheShards) {
  v1::Placement proto = InGroups(2, 2, {{"users", 16, {}}}).ToProto();
  proto.set_table_shards(4);
  EXPECT_EQ(Placement::FromProto(proto).status(),
            absl::InvalidArgumentError("placement.table_shards: expected at most 3 with 1 tables "
                                       "and 4 shards, found 4"));
  proto = InGroups(2, 2).ToProto();
  proto.set_table_shards(1);
  EXPECT_EQ(Placement::FromProto(proto).status(),
            absl::InvalidArgumentError("placement.table_shards: expected at most 0 with 0 tables "
                                       "and 4 shards, found 1"));
}

TEST(PlacementTest, FingerprintFollowsTheTables) {
  const std::vector<TableSpec> tables = {{"users", 16, {}}};
  const auto fingerprint = [](std::vector<TableSpec> tables) {
    return Placement::Compute(Mlp(), 2, 1000, std::move(tables)).Fingerprint();
  };
  EXPECT_NE(fingerprint(tables), fingerprint({}));
  EXPECT_NE(fingerprint(tables), fingerprint({{"items", 16, {}}}));
  EXPECT_NE(fingerprint(tables), fingerprint({{"users", 8, {}}}));
  EXPECT_NE(fingerprint(tables), fingerprint({{"users", 16, {Initializer::Kind::kUniform, 0, 1}}}));
  EXPECT_EQ(fingerprint({{"a", 1, {}}, {"b", 2, {}}}), fingerprint({{"b", 2, {}}, {"a", 1, {}}}));
}

TEST(PlacementTest, TableHasALineForTables) {
  EXPECT_THAT(
      Placement::Compute({}, 3, 1, {{"users", 16, {}}, {"items", 8, {}}}).ToTable(),
      HasSubstr("\ntables: items (dim 8), users (dim 16); row partitions per shard: 85 85 86\n"));
}

class PlacementProtoTest : public testing::Test {
 protected:
  std::string Error() const {
    const auto placement = Placement::FromProto(proto_);
    EXPECT_EQ(placement.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(placement.status().message());
  }

  v1::Placement proto_ = Placement::Compute(Mlp(), 2).ToProto();
};

TEST_F(PlacementProtoTest, RefusesNumbersOutOfRange) {
  proto_.set_num_shards(0);
  EXPECT_EQ(Error(), "placement.num_shards: expected 1..65536, found 0");
  proto_.set_num_shards(2);
  proto_.set_block_elements(0);
  EXPECT_EQ(Error(), "placement.block_elements: expected > 0, found 0");
}

TEST_F(PlacementProtoTest, RefusesBadVariables) {
  proto_.mutable_variables(1)->set_name("dense_1/bias");
  EXPECT_EQ(Error(), "placement.variables: expected unique names, found \"dense_1/bias\" twice");
  proto_.mutable_variables(1)->clear_name();
  EXPECT_THAT(Error(), HasSubstr("variable.name"));
}

TEST_F(PlacementProtoTest, RefusesBadTables) {
  proto_ = Placement::Compute(Mlp(), 2, 1000, {{"items", 8, {}}, {"users", 16, {}}}).ToProto();
  proto_.set_row_partitions(128);
  EXPECT_EQ(Error(), "placement.row_partitions: expected 256 with 2 tables, found 128");
  proto_.set_row_partitions(256);
  proto_.mutable_tables(0)->set_dim(1025);
  EXPECT_EQ(Error(), "table \"items\": dim: expected 1..1024, found 1025");
  proto_.mutable_tables(0)->set_dim(1024);
  proto_.mutable_tables(0)->set_name("dense_1/bias");
  EXPECT_EQ(Error(),
            "placement.tables: expected names that no variable has, found \"dense_1/bias\"");
  proto_.mutable_tables(0)->set_name("users");
  EXPECT_EQ(Error(),
            "placement.tables: expected unique names in ascending order, found \"users\" after "
            "\"users\"");
  while (proto_.tables_size() <= 4096) proto_.add_tables();
  EXPECT_EQ(Error(), "placement.tables: expected at most 4096, found 4097");
  proto_.clear_tables();
  EXPECT_EQ(Error(), "placement.row_partitions: expected 0 with 0 tables, found 256");
}

TEST_F(PlacementProtoTest, RefusesReferencesOutOfRange) {
  proto_.mutable_partitions(3)->set_shard(2);
  EXPECT_EQ(Error(), "placement.partitions[3].shard: expected < 2, found 2");
  proto_.mutable_partitions(3)->set_shard(0);
  proto_.mutable_partitions(3)->set_variable(6);
  EXPECT_EQ(Error(), "placement.partitions[3].variable: expected < 6, found 6");
}

TEST_F(PlacementProtoTest, RefusesEmptyPartitions) {
  proto_.mutable_partitions(2)->set_row_end(655);
  EXPECT_EQ(Error(), "placement.partitions[2].row_end: expected > 655, found 655");
}

TEST_F(PlacementProtoTest, RefusesGapsOverlapsAndExcess) {
  proto_.mutable_partitions(2)->set_row_begin(656);
  EXPECT_THAT(Error(), HasSubstr("continuing at row 655, found 656"));
  proto_.mutable_partitions(2)->set_row_begin(600);
  EXPECT_THAT(Error(), HasSubstr("continuing at row 655, found 600"));
  proto_.mutable_partitions(2)->set_row_begin(655);
  proto_.mutable_partitions(2)->set_row_end(700);
  EXPECT_THAT(Error(), HasSubstr("\"dense_1/kernel\" exactly once and in order, continuing at row "
                                 "700, found none"));
  proto_.mutable_partitions(2)->set_row_end(785);
  EXPECT_THAT(Error(), HasSubstr("expected the rows of \"dense_1/kernel\""));
}

TEST_F(PlacementProtoTest, RefusesTwoPartitionsOnOneShard) {
  proto_.mutable_partitions(2)->set_shard(0);
  EXPECT_EQ(Error(),
            "placement.partitions: expected at most one partition of \"dense_1/kernel\" per shard, "
            "found two on shard 0");
}

TEST_F(PlacementProtoTest, RefusesPartitionsOutOfOrder) {
  *proto_.add_partitions() = proto_.partitions(0);
  EXPECT_EQ(Error(), "placement.partitions[7].variable: expected ascending order, found 0");
}

TEST_F(PlacementProtoTest, RefusesMissingPartitions) {
  proto_.clear_partitions();
  EXPECT_THAT(Error(), HasSubstr("continuing at row 0, found none"));
}

TEST_F(PlacementProtoTest, RefusesWhatNoModelHas) {
  v1::Placement huge;
  huge.set_num_shards(1);
  huge.set_block_elements(1);
  for (int v = 0; v < 17; ++v) {
    v1::VariableSpec* variable = huge.add_variables();
    variable->set_name(absl::StrCat("v", v));
    variable->add_shape(int64_t{1} << 60);
  }
  const auto error = [](const v1::Placement& proto) {
    return std::string(Placement::FromProto(proto).status().message());
  };
  EXPECT_EQ(error(huge),
            "placement.variables: expected at most 72057594037927936 elements, found "
            "1152921504606846976");
  for (int v = 17; v <= 65536; ++v) huge.add_variables();
  EXPECT_EQ(error(huge), "placement.variables: expected at most 65536, found 65537");
  proto_.mutable_partitions()->Reserve((1 << 20) + 1);
  while (proto_.partitions_size() <= 1 << 20) proto_.add_partitions();
  EXPECT_EQ(Error(), "placement.partitions: expected at most 1048576, found 1048577");
}

}  // namespace
}  // namespace keelson
