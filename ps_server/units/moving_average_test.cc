// Variables that are not trained: what is pushed for them is averaged, whatever the optimizer is.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_reader.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "ps_server/service/shard_testing.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/streamed_shard.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMean[] = "norm/moving_mean";
constexpr char kVariance[] = "norm/moving_variance";
constexpr char kKernel[] = "dense/kernel";

// Both averages are in several blocks; on two shards the mean is on both.
Placement NormPlacement(size_t num_shards) {
  const Initializer one = {Initializer::Kind::kConstant, 1, 0};
  return Placement::Compute({{kKernel, Shape({300, 17}), one},
                             {kMean, Shape({9000}), {}, 0.9f},
                             {kVariance, Shape({1500}), one, 0.5f}},
                            num_shards, /*block_elements=*/1000);
}

const std::vector<float>& Of(const Arrays& arrays, const std::string& variable) {
  return arrays.at(variable);
}

class MovingAverageTest : public testing::Test {
 protected:
  // One server with all variables.
  void Start(const std::string& optimizer, const std::string& stale_gradients = "",
             bool reject_non_finite = false) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0, optimizer);
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(stale_gradients,
                                                              request.mutable_stale_gradients()));
    request.set_reject_non_finite(reject_non_finite);
    v1::InitializeShardResponse response;
    server_.emplace();
    const absl::Status status = server_->handler.Initialize(request, &response);
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<TestResponse> Call(BulkMethod method, const TestRequest& request) {
    return CallBulk(&server_->handler, method, request);
  }
  absl::Status Stage(uint64_t incarnation, const RoundId& round, float weight, float sample) {
    const auto sequence = static_cast<uint64_t>(round.round + 1);
    return Call(BulkMethod::kPush,
                StagedPushOf(placement_, 0, incarnation, sequence, round, weight, sample))
        .status();
  }
  Arrays Values() {
    const auto response = Call(BulkMethod::kPull, PullOf(placement_, 0));
    EXPECT_TRUE(response.ok()) << response.status();
    Arrays arrays;
    if (response.ok()) Receive(placement_, *response, &arrays);
    return arrays;
  }

  const Placement placement_ = NormPlacement(1);
  std::optional<TestServer> server_;
};

TEST_F(MovingAverageTest, PushesOfAllWorkersAreAveragedOnAnyNumberOfShards) {
  for (const int shards : {1, 2}) {
    const Placement placement = NormPlacement(shards);
    const TestServers servers = StartServers(placement, "momentum {}");
    std::vector<double> mean(9000, 0), variance(1500, 1);
    for (uint64_t sequence = 1; sequence <= 30; ++sequence) {
      PushAll(placement, servers, /*incarnation=*/1 + sequence % 3, sequence);
      const auto sample = [&](size_t variable, size_t i) {
        return double{TestGradient(variable, static_cast<int64_t>(i), sequence)};
      };
      for (size_t i = 0; i < mean.size(); ++i) {
        mean[i] = double{0.9f} * mean[i] + (1 - double{0.9f}) * sample(1, i);
      }
      for (size_t i = 0; i < variance.size(); ++i) {
        variance[i] = 0.5 * variance[i] + 0.5 * sample(2, i);
      }
    }
    const Arrays values = PullAll(placement, servers);
    for (size_t i = 0; i < mean.size(); ++i) ASSERT_NEAR(Of(values, kMean)[i], mean[i], 1e-6) << i;
    for (size_t i = 0; i < variance.size(); ++i) {
      ASSERT_NEAR(Of(values, kVariance)[i], variance[i], 1e-6) << i;
    }
  }
}

TEST_F(MovingAverageTest, ARepeatedPushCountsOnce) {
  Start("sgd {}");
  for (int i = 0; i < 3; ++i) {
    for (const BulkMethod method : {BulkMethod::kPush, BulkMethod::kPushPull}) {
      ASSERT_TRUE(Call(method, ConstantPushOf(placement_, 0, 1, 1, 3)).ok());
    }
  }
  const Arrays values = Values();
  EXPECT_THAT(Of(values, kMean), Each(testing::FloatEq(0.3f)));
  EXPECT_THAT(Of(values, kVariance), Each(2.0f));
  EXPECT_EQ(StatusOf(&server_->handler).shard_step(), 1);
}

TEST_F(MovingAverageTest, NothingOfTheOptimizerTouchesThem) {
  const auto after_pushes = [this] {
    for (uint64_t sequence = 1; sequence <= 6; ++sequence) {
      TestRequest push = PushOf(placement_, 0, 1 + sequence % 2, sequence);
      push.header.step = static_cast<int64_t>(sequence);
      push.header.pulled_shard_step = 0;  // stale
      EXPECT_TRUE(Call(BulkMethod::kPushPull, push).ok());
    }
    return Values();
  };
  Start("sgd {}");
  const Arrays expected = after_pushes();
  Start("adamw { weight_decay: 0.5 } l2: 3 clip_value: 0.001",
        "scale_learning_rate: true delay_compensation { lambda: 4 }");
  const Arrays values = after_pushes();
  EXPECT_EQ(Of(values, kMean), Of(expected, kMean));
  EXPECT_EQ(Of(values, kVariance), Of(expected, kVariance));
  EXPECT_NE(Of(values, kKernel), Of(expected, kKernel));
}

TEST_F(MovingAverageTest, ARoundIsOneUpdateWithTheWeightedMeanOfItsSamples) {
  Start("momentum {} l2: 1");
  ASSERT_TRUE(Stage(1, {0, 1}, /*weight=*/1, 2).ok());
  ASSERT_TRUE(Stage(2, {0, 1}, /*weight=*/3, 6).ok());
  ASSERT_TRUE(Stage(2, {0, 1}, /*weight=*/3, 6).ok()) << "a repetition, which does not count";
  EXPECT_THAT(Of(Values(), kVariance), Each(1.0f)) << "nothing moves before the commit";
  ASSERT_TRUE(CommitRound(&server_->handler, {0, 1}, 2).ok());
  EXPECT_THAT(Of(Values(), kVariance), Each(3.0f));  // (1 + 5) / 2
  EXPECT_THAT(Of(Values(), kMean), Each(testing::FloatEq(0.5f)));
  ASSERT_TRUE(Stage(1, {1, 1}, 2, 9).ok());
  ASSERT_TRUE(CommitRound(&server_->handler, {1, 1}, 1).ok());
  EXPECT_THAT(Of(Values(), kVariance), Each(6.0f));
}

TEST_F(MovingAverageTest, ASampleThatIsNotFiniteIsRefusedLikeAGradient) {
  Start("sgd {}", "", /*reject_non_finite=*/true);
  TestRequest push = ConstantPushOf(placement_, 0, 1, 1, 1);
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(push.payload.data() + push.payload.size() - sizeof(float), &infinite, sizeof(float));
  const absl::Status status = Call(BulkMethod::kPush, push).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(kVariance));
  EXPECT_THAT(Of(Values(), kVariance), Each(1.0f));
}

std::unique_ptr<ShardStore> NewStore(size_t shard, size_t num_shards) {
  auto store = InitializeShard(StoreOptions(NormPlacement(num_shards), shard, "adam {}"), 1);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

void PushTo(ShardStore* store, uint64_t sequence) {
  const Placement& placement = store->placement();
  const ShardStore::PushScope scope(store);
  for (const size_t p : store->partitions()) {
    for (int64_t b = 0; b < placement.NumBlocks(p); ++b) {
      const int64_t first = placement.PartitionFirstElement(p) + b * placement.block_elements();
      std::vector<float> sample;
      for (int64_t e = 0; e < placement.BlockElements(p, b); ++e) {
        sample.push_back(TestGradient(placement.partition(p).variable, first + e, sequence));
      }
      EXPECT_TRUE(ApplyTo(*store->Find(p, b), store->OptimizerOf(p), {1, sequence, 0.1f}, sample));
    }
  }
  store->CountPush();
}

void CollectValues(const ShardStore& store, Arrays* arrays) {
  const ShardCut cut = store.Cut();
  for (size_t i = 0; i < cut.partitions.size(); ++i) {
    const size_t p = store.partitions()[i];
    const VariableSpec& variable = store.placement().VariableOf(p);
    std::vector<float>& values = (*arrays)[variable.name];
    values.resize(variable.shape.num_elements());
    int64_t first = store.placement().PartitionFirstElement(p);
    for (const BlockContentRef& block : cut.partitions[i]) {
      EXPECT_EQ(block->slots.size(), variable.trained() ? 2u : 0u) << variable.name;
      for (const float value : block->values.span()) {
        values[first++] = value;
      }
    }
  }
}

TEST(MovingAverageSnapshotTest, HasNoSlotsOfThemAndIsRestoredOnOtherShards) {
  const std::string prefix = FreshDirectory() + "/model.ckpt-2";
  std::vector<BundleIndexEntry> entries;
  Arrays at_snapshot, one_step_on;
  for (size_t s = 0; s < 2; ++s) {
    const std::unique_ptr<ShardStore> store = NewStore(s, 2);
    PushTo(store.get(), 1);
    PushTo(store.get(), 2);
    auto writer = BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, s, 2), s);
    ASSERT_TRUE(writer.ok()) << writer.status();
    auto written = WriteShard(*store, store->Cut(), {}, writer->get());
    ASSERT_TRUE(written.ok()) << written.status();
    for (BundleIndexEntry& entry : written->entries) entries.push_back(std::move(entry));
    CollectValues(*store, &at_snapshot);
    PushTo(store.get(), 3);
    CollectValues(*store, &one_step_on);
  }
  ASSERT_TRUE(WriteBundleIndex(FileSystem::Real(), prefix, 2, std::move(entries)).ok());
  const auto bundle = BundleReader::Open(prefix);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  std::vector<std::string> names;
  for (const TensorInfo& tensor : (*bundle)->List()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("_keelson/shard-0-of-2", "_keelson/shard-1-of-2", "beta1_power",
                                 "beta2_power", kKernel, "dense/kernel/Adam", "dense/kernel/Adam_1",
                                 kMean, kVariance));

  const auto restored = RestoreShard(StoreOptions(NormPlacement(1), 0, "adam {}"), prefix);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ((*restored)->slot_bytes(), 300 * 17 * 4 * 2);
  Arrays values;
  CollectValues(**restored, &values);
  EXPECT_EQ(values, at_snapshot);
  PushTo(restored->get(), 3);
  CollectValues(**restored, &values);
  EXPECT_EQ(values, one_step_on);
}

TEST(MovingAverageSnapshotTest, AStreamBringsTheirValuesAlone) {
  const Placement placement =
      Placement::Compute({{"w", Shape({2}), {}}, {"x", Shape({3}), {}, 0.5f}}, 1);
  v1::InitializeChunk chunk;
  chunk.mutable_start()->set_restore_step(4);
  chunk.set_shard_step(4);
  const auto add = [&chunk](const std::vector<float>& elements) {
    v1::InitializeChunk::Block* block = chunk.add_blocks();
    block->set_elements(BytesOf(elements));
    block->set_version(5);
    block->set_updates(4);
  };
  add({1, 2, 10, 20, 100, 200});  // values, and Adam's slots
  add({7, 8, 9});
  const auto receive = [&] {
    return ReceiveShard(
        StoreOptions(placement, 0, "adam {}"), chunk,
        [] { return std::optional<v1::InitializeChunk>(); }, ReceivedBlocks::kWithSlots);
  };
  const auto store = receive();
  ASSERT_TRUE(store.ok()) << store.status();
  Arrays values;
  CollectValues(**store, &values);
  EXPECT_THAT(values["x"], ElementsAre(7, 8, 9));

  chunk.mutable_blocks()->RemoveLast();
  add({7, 8, 9, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(receive().status().message(),
            "variable x, elements 0 to 3: expected 12 bytes of values and slots, found 36");
}

}  // namespace
}  // namespace keelson
