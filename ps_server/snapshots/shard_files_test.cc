#include "ps_server/snapshots/shard_files.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/shard_state.h"
#include "gmock/gmock.h"
#include "keelson/v1/checkpoint.pb.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using Stores = std::vector<std::unique_ptr<ShardStore>>;

Stores NewStores(size_t num_shards, const std::string& optimizer) {
  Stores stores;
  for (size_t s = 0; s < num_shards; ++s) {
    auto store = InitializeShard(StoreOptions(TestPlacement(num_shards), s, optimizer), kTestSeed);
    EXPECT_TRUE(store.ok()) << store.status();
    stores.push_back(*std::move(store));
  }
  return stores;
}

Stores RestoreStores(size_t num_shards, const std::string& optimizer, const std::string& prefix) {
  Stores stores;
  for (size_t s = 0; s < num_shards; ++s) {
    auto store = RestoreShard(StoreOptions(TestPlacement(num_shards), s, optimizer), prefix);
    EXPECT_TRUE(store.ok()) << store.status();
    stores.push_back(*std::move(store));
  }
  return stores;
}

void PushTo(const Stores& stores, uint64_t sequence) {
  for (const auto& store : stores) {
    const Placement& placement = store->placement();
    const ShardStore::PushScope scope(store.get());
    for (const size_t p : store->partitions()) {
      for (int64_t b = 0; b < placement.NumBlocks(p); ++b) {
        const int64_t first = placement.PartitionFirstElement(p) + b * placement.block_elements();
        std::vector<float> gradient;
        for (int64_t e = 0; e < placement.BlockElements(p, b); ++e) {
          gradient.push_back(TestGradient(placement.partition(p).variable, first + e, sequence));
        }
        EXPECT_TRUE(
            ApplyTo(*store->Find(p, b), store->OptimizerOf(p), {1, sequence, 0.1f}, gradient));
      }
    }
    store->CountPush();
  }
}

void CopyTo(const AlignedBuffer& from, int64_t first, int64_t size, std::vector<float>* to) {
  to->resize(size);
  std::copy_n(from.data(), from.size(), to->begin() + first);
}

// Values and slots of all shards.
Arrays Collect(const Stores& stores) {
  Arrays arrays;
  for (const auto& store : stores) {
    const Placement& placement = store->placement();
    const ShardCut cut = store->Cut();
    for (size_t i = 0; i < cut.partitions.size(); ++i) {
      const size_t p = store->partitions()[i];
      const VariableSpec& variable = placement.VariableOf(p);
      const int64_t size = variable.shape.num_elements();
      int64_t first = placement.PartitionFirstElement(p);
      for (const BlockContentRef& block : cut.partitions[i]) {
        CopyTo(block->values, first, size, &arrays[variable.name]);
        for (size_t slot = 0; slot < block->slots.size(); ++slot) {
          const std::string name =
              absl::StrCat(variable.name, "/", store->OptimizerOf(p).slots()[slot].name);
          CopyTo(block->slots[slot], first, size, &arrays[name]);
        }
        first += block->values.size();
      }
    }
  }
  return arrays;
}

absl::StatusOr<std::string> WriteStores(const Stores& stores) {
  const std::string prefix = FreshDirectory() + "/model.ckpt-1";
  const size_t files = stores.size();
  std::vector<BundleIndexEntry> entries;
  for (size_t s = 0; s < files; ++s) {
    const ShardStore& store = *stores[s];
    auto writer = BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, s, files), s);
    if (!writer.ok()) return writer.status();
    auto written = WriteShard(store, store.Cut(), {}, writer->get());
    if (!written.ok()) return written.status();
    for (BundleIndexEntry& entry : written->entries) entries.push_back(std::move(entry));
  }
  const absl::Status status =
      WriteBundleIndex(FileSystem::Real(), prefix, files, std::move(entries));
  if (!status.ok()) return status;
  return prefix;
}

struct Case {
  const char* optimizer;
  size_t arrays;  // of values and slots
};

class ShardFilesTest : public testing::TestWithParam<Case> {};

TEST_P(ShardFilesTest, ValuesAndSlotsComeBackOnAnyNumberOfShards) {
  for (const int shards : {1, 2, 3, 5}) {
    const Stores stores = NewStores(shards, GetParam().optimizer);
    PushTo(stores, 1);
    PushTo(stores, 2);
    const auto prefix = WriteStores(stores);
    ASSERT_TRUE(prefix.ok()) << prefix.status();
    const Arrays at_snapshot = Collect(stores);
    ASSERT_EQ(at_snapshot.size(), GetParam().arrays);
    PushTo(stores, 3);
    const Arrays one_step_on = Collect(stores);
    for (const int other : {1, 2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(shards, " shards restored on ", other));
      const Stores restored = RestoreStores(other, GetParam().optimizer, *prefix);
      EXPECT_EQ(Collect(restored), at_snapshot);
      PushTo(restored, 3);
      EXPECT_EQ(Collect(restored), one_step_on);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ShardFilesTest,
                         testing::Values(Case{"sgd {}", 5}, Case{"momentum {}", 10},
                                         Case{"adagrad {}", 10},
                                         Case{"rmsprop { momentum: 0.5 }", 15}, Case{"adam {}", 15},
                                         Case{"adamw {}", 15}, Case{"ftrl { l1: 0.1 }", 15},
                                         Case{"adam {} groups { variables: 'out/*' ftrl {} } "
                                              "groups { variables: '*/bias' sgd {} } "
                                              "groups { variables: 'conv/*' frozen: true }",
                                              11}));

TEST(ShardFilesInitialTest, InitialValuesDoNotDependOnTheNumberOfShards) {
  const Arrays one = Collect(NewStores(1, "sgd {}"));
  EXPECT_EQ(Collect(NewStores(2, "sgd {}")), one);
  EXPECT_EQ(Collect(NewStores(5, "sgd {}")), one);
}

TEST(ShardFilesFormatTest, BundleHasTensorFlowsNamesAndTheBetaPowersOnce) {
  const Stores stores = NewStores(3, "adam {}");
  PushTo(stores, 1);
  PushTo(stores, 2);
  const auto prefix = WriteStores(stores);
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  const auto bundle = BundleReader::Open(*prefix);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE((*bundle)->VerifyAll().ok());
  std::vector<std::string> names;
  for (const TensorInfo& tensor : (*bundle)->List()) names.push_back(tensor.name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre(
                  "_keelson/shard-0-of-3", "_keelson/shard-1-of-3", "_keelson/shard-2-of-3",
                  "beta1_power", "beta2_power", "conv/kernel", "conv/kernel/Adam",
                  "conv/kernel/Adam_1", "dense/bias", "dense/bias/Adam", "dense/bias/Adam_1",
                  "dense/kernel", "dense/kernel/Adam", "dense/kernel/Adam_1", "out/kernel",
                  "out/kernel/Adam", "out/kernel/Adam_1", "scale", "scale/Adam", "scale/Adam_1"));
  float beta1_power = 0;
  ASSERT_TRUE((*bundle)->ReadElements("beta1_power", 0, absl::MakeSpan(&beta1_power, 1)).ok());
  EXPECT_FLOAT_EQ(beta1_power, 0.9f * 0.9f * 0.9f);
  const auto kernel = (*bundle)->ReadTensor("dense/kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->shape(), Shape({300, 17}));
}

TEST(ShardFilesFormatTest, VersionsUpdatesAndSequencesAreKeptForTheSameBlocks) {
  const Stores stores = NewStores(2, "sgd {}");
  PushTo(stores, 7);
  PushTo(stores, 8);
  const auto prefix = WriteStores(stores);
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  for (const auto& store : RestoreStores(2, "sgd {}", *prefix)) {
    EXPECT_EQ(store->shard_step(), 2);
    for (const auto& blocks : store->Cut().partitions) {
      for (const BlockContentRef& block : blocks) {
        EXPECT_EQ(block->version, 3u);
        EXPECT_EQ(block->updates, 2);
      }
    }
    const auto units = static_cast<uint32_t>(store->num_blocks());
    EXPECT_EQ(store->Cut().applied, (SequenceTable{{1, {{0, units, 8}}}}));
  }
}

TEST(ShardFilesFormatTest, BlocksOfOtherElementsContinueTheirUpdates) {
  const Stores stores = NewStores(2, "adam {}");
  PushTo(stores, 1);
  const auto prefix = WriteStores(stores);
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  const Placement other = Placement::Compute(TestVariables(), 1, /*block_elements=*/700);
  const auto store = RestoreShard(StoreOptions(other, 0, "adam {}"), *prefix);
  ASSERT_TRUE(store.ok()) << store.status();
  for (const auto& blocks : (*store)->Cut().partitions) {
    for (const BlockContentRef& block : blocks) EXPECT_EQ(block->updates, 1);
  }
}

class RestoreErrorTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto prefix = WriteStores(NewStores(2, "sgd {}"));
    ASSERT_TRUE(prefix.ok()) << prefix.status();
    prefix_ = *prefix;
  }

  absl::Status Restore(std::vector<VariableSpec> variables, const std::string& optimizer) {
    const Placement placement = Placement::Compute(std::move(variables), 1);
    return RestoreShard(StoreOptions(placement, 0, optimizer), prefix_).status();
  }

  std::string prefix_;
};

TEST_F(RestoreErrorTest, MissingVariableIsNamed) {
  std::vector<VariableSpec> variables = TestVariables();
  variables.push_back({"dense_9/kernel", Shape({3}), {}});
  const absl::Status status = Restore(variables, "sgd {}");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dense_9/kernel"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(prefix_));
}

TEST_F(RestoreErrorTest, OtherShapeIsNamed) {
  std::vector<VariableSpec> variables = TestVariables();
  variables[2].shape = Shape({17, 300});
  const absl::Status status = Restore(variables, "sgd {}");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dense/kernel"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[17, 300]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[300, 17]"));
}

TEST_F(RestoreErrorTest, OfAnotherOptimizerTheSlotsStartAfresh) {
  const Stores fresh = NewStores(2, "adagrad { initial_accumulator: 0.25 }");
  EXPECT_EQ(Collect(RestoreStores(2, "adagrad { initial_accumulator: 0.25 }", prefix_)),
            Collect(fresh));
}

TEST_F(RestoreErrorTest, MissingBundle) {
  prefix_ += "0";
  EXPECT_EQ(Restore(TestVariables(), "sgd {}").code(), absl::StatusCode::kNotFound);
}

TEST_F(RestoreErrorTest, DamagedValues) {
  const std::string path = DataPath(prefix_, 0, 2);
  std::string content = *ReadFile(path);
  content[10] = static_cast<char>(content[10] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  const absl::Status status = Restore(TestVariables(), "sgd {}");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

// A bundle of one empty model whose shard state is `state`.
absl::Status RestoreWithState(const std::string& state) {
  const std::string prefix = FreshDirectory() + "/model.ckpt-1";
  auto writer = BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, 0, 1), 0);
  EXPECT_TRUE((*writer)->AddString(ShardStateName(0, 1), state).ok());
  EXPECT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 1, *(*writer)->Finish()).ok());
  return RestoreShard(StoreOptions(Placement(), 0, "sgd {}"), prefix).status();
}

TEST(ShardStateTest, StateThatIsNoneIsDataLoss) {
  EXPECT_EQ(RestoreWithState("\xff\xff\xff").code(), absl::StatusCode::kDataLoss);
}

TEST(ShardStateTest, BlockOfAnUnknownVariableIsDataLoss) {
  v1::ShardState state;
  state.add_variables("w");
  state.add_blocks()->set_variable(1);
  const absl::Status status = RestoreWithState(state.SerializeAsString());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("_keelson/shard-0-of-1"));
}

TEST(ShardStateTest, NamesAreThoseOfTheBundle) {
  EXPECT_EQ(ShardStateName(1, 2), "_keelson/shard-1-of-2");
}

}  // namespace
}  // namespace keelson
