// The same job on arrays of elements and on wire memory: the same bits, whatever the formats.
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fresh_directory_testing.h"
#include "core/device/factory/device_factory.h"
#include "gtest/gtest.h"
#include "testing/device/device_testing.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

struct FormatsCase {
  const char* name;
  v1::WireFormat push;
  v1::WireFormat pull;
};

void PrintTo(const FormatsCase& c, std::ostream* out) { *out << c.name; }

std::unique_ptr<Device> Cpu() {
  auto device = CreateDevice("cpu", {.threads = 1});
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> OpenCpu() {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(Cpu());
  return MakePeerGroup(std::move(devices));
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> OpenHostless(int count) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) devices.push_back(std::make_unique<HostlessDevice>(Cpu()));
  return MakePeerGroup(std::move(devices));
}

v1::TrainConfig ConfigWith(const std::string& model_dir, const FormatsCase& formats, int depth) {
  v1::TrainConfig config = SmallConfig(model_dir);
  config.mutable_model()->mutable_layers(1)->mutable_dense()->set_units(
      15);  // odd numbers of bytes
  config.mutable_transfer()->set_depth(depth);
  v1::TransferConfig::Group* group = config.mutable_transfer()->add_groups();
  group->set_variables("*");
  group->set_push(formats.push);
  group->set_pull(formats.pull);
  group->set_top_k_fraction(0.05f);
  group->set_min_elements(1);
  return config;
}

class FormatsTest : public testing::TestWithParam<FormatsCase> {
 protected:
  // What one worker trains over two servers.
  template <typename OpenDevices>
  static ModelValues Train(const OpenDevices& open_devices) {
    const std::string model_dir = FreshDirectory();
    LocalCluster::Options options = {2, 1, false, ConfigWith(model_dir, GetParam(), 1)};
    options.open_devices = open_devices;
    LocalCluster cluster(std::move(options));
    cluster.Start();
    cluster.ExpectDone();
    const auto values = ReadModelValues(model_dir + "/model.ckpt-48");
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *values : ModelValues();
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, FormatsTest,
                         testing::Values(FormatsCase{"Float32", v1::FLOAT32, v1::FLOAT32},
                                         FormatsCase{"Float16", v1::FLOAT16, v1::BFLOAT16},
                                         FormatsCase{"Bfloat16", v1::BFLOAT16, v1::FLOAT16},
                                         FormatsCase{"Int8", v1::INT8, v1::FLOAT32},
                                         FormatsCase{"TopK", v1::TOP_K, v1::FLOAT16}),
                         [](const auto& info) { return info.param.name; });

TEST_P(FormatsTest, WireMemoryTrainsTheSameBits) {
  const ModelValues elements = Train(OpenCpu);
  const ModelValues bytes = Train([] { return OpenHostless(1); });
  ASSERT_FALSE(elements.empty());
  EXPECT_TRUE(elements == bytes);
}

// Which values a step sees at depth 2 hangs on the time that answers take.
TEST_P(FormatsTest, WireMemoryAtDepth2TrainsToTheEnd) {
  const std::string model_dir = FreshDirectory();
  LocalCluster::Options options = {2, 2, false, ConfigWith(model_dir, GetParam(), 2)};
  options.open_devices = [] { return OpenHostless(1); };
  LocalCluster cluster(std::move(options));
  cluster.Start();
  cluster.ExpectDone();
  EXPECT_EQ(cluster.chief().coordinator()->reports()->GetStatus().totals.steps(), 48);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 48);
}

TEST(ReplicasTest, ThreeDevicesShareEachBatch) {
  const std::string model_dir = FreshDirectory();
  LocalCluster::Options options = {2, 1, false, SmallConfig(model_dir)};
  options.open_devices = [] { return OpenHostless(3); };
  LocalCluster cluster(std::move(options));
  cluster.Start();
  cluster.ExpectDone();
  EXPECT_EQ(cluster.chief().coordinator()->reports()->GetStatus().totals.examples(),
            3 * 100 + 9 * 8);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(cluster.ShardStatus(s).shard_step(), 48);
}

}  // namespace
}  // namespace keelson
