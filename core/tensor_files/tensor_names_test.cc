#include "core/tensor_files/tensor_names.h"

#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/tensor_files/bundle_source.h"
#include "core/tensor_files/object_graph.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;

constexpr char kSuffix[] = "/.ATTRIBUTES/VARIABLE_VALUE";

// A graph of objects and the bundle that goes with it.
class TensorNamesTest : public testing::Test {
 protected:
  TensorNamesTest() { graph_.add_nodes(); }

  // An object that `parent` holds under this name.
  int Object(int parent, const std::string& local_name) {
    const int id = graph_.nodes_size();
    graph_.add_nodes();
    Link(parent, local_name, id);
    return id;
  }
  void Link(int parent, const std::string& local_name, int child) {
    auto* link = graph_.mutable_nodes(parent)->add_children();
    link->set_node_id(child);
    link->set_local_name(local_name);
  }
  // A float32 variable of one element, stored under its path.
  int Variable(int parent, const std::string& local_name, const std::string& full_name,
               const std::string& path, const std::string& bytes = "abcd") {
    const int id = Object(parent, local_name);
    auto* attribute = graph_.mutable_nodes(id)->add_attributes();
    attribute->set_name("VARIABLE_VALUE");
    attribute->set_full_name(full_name);
    attribute->set_checkpoint_key(path + kSuffix);
    tensors_.push_back({path + kSuffix, BundleDtype::kFloat32, Shape({1}), bytes});
    return id;
  }
  std::unique_ptr<BundleSource> Open() {
    tensors_.push_back(
        {kObjectGraphTensor, BundleDtype::kString, Shape(), graph_.SerializeAsString()});
    WriteRawBundle(prefix_, tensors_);
    auto source = BundleSource::Open(prefix_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  const std::string prefix_ = FreshDirectory() + "/ck-1";
  v1::ObjectGraph graph_;
  std::vector<RawTensor> tensors_;
};

// As tf.train.Checkpoint(model=model, optimizer=model.optimizer) of Keras 3 stores it: the kernel
// lies under the optimizer's list, which is the shortest path to it.
TEST_F(TensorNamesTest, AModelOfKerasHasTheNamesOfItsVariables) {
  const int model = Object(0, "model");
  const int optimizer = Object(0, "optimizer");
  Variable(optimizer, "_iterations", "adam/iteration", "optimizer/_iterations");
  const int moments = Object(optimizer, "_variables");
  Variable(moments, "2", "adam/dense_kernel_momentum", "optimizer/_variables/2");
  const int trained = Object(optimizer, "_trainable_variables");
  const int kernel =
      Variable(trained, "0", "sequential/dense/kernel", "optimizer/_trainable_variables/0", "wxyz");
  Link(model, "_kernel", kernel);
  Variable(model, "moving_mean", "sequential/norm/moving_mean", "model/moving_mean");
  Variable(0, "save_counter", "save_counter", "save_counter");
  const auto source = Open();
  EXPECT_THAT(NamesOf(*source->Variables()),
              ElementsAre("sequential/dense/kernel", "sequential/norm/moving_mean"));
  EXPECT_THAT(
      NamesOf(source->List()),
      ElementsAre(kObjectGraphTensor, "adam/dense_kernel_momentum", "adam/iteration",
                  "save_counter", "sequential/dense/kernel", "sequential/norm/moving_mean"));
  EXPECT_EQ(*source->Read("sequential/dense/kernel"), "wxyz");
}

// A Keras 2 optimizer names its slots in the graph.
TEST_F(TensorNamesTest, SlotsAreNoVariables) {
  const int weight = Variable(Object(0, "layer"), "kernel", "kernel", "layer/kernel");
  const int optimizer = Object(0, "optimizer");
  const int slot = graph_.nodes_size();
  Variable(optimizer, "m", "kernel/m", "layer/kernel/.OPTIMIZER_SLOT/optimizer/m");
  auto* reference = graph_.mutable_nodes(optimizer)->add_slot_variables();
  reference->set_original_variable_node_id(weight);
  reference->set_slot_name("m");
  reference->set_slot_variable_node_id(slot);
  EXPECT_THAT(NamesOf(*Open()->Variables()), ElementsAre("kernel"));
}

TEST_F(TensorNamesTest, WhatIsStoredTwiceIsListedOnce) {
  Variable(Object(0, "variables"), "0", "dense/kernel", "variables/0");
  Variable(Object(0, "_all_variables"), "3", "dense/kernel", "_all_variables/3");
  EXPECT_THAT(NamesOf(*Open()->Variables()), ElementsAre("dense/kernel"));
}

TEST_F(TensorNamesTest, PathsTellApartWhatHasOneName) {
  const int net = Object(0, "net");
  Variable(net, "a", "w", "net/a", "1234");
  Variable(net, "b", "w", "net/b", "5678");
  Variable(net, "c", "Variable", "net/c");
  const auto source = Open();
  EXPECT_THAT(NamesOf(*source->Variables()), ElementsAre("net/a", "net/b", "net/c"));
  EXPECT_EQ(*source->Read("net/b"), "5678");
  EXPECT_EQ(*source->Read(std::string("net/b") + kSuffix), "5678");
}

TEST_F(TensorNamesTest, AGraphThatCannotBeReadOrLeadsNowhere) {
  Link(0, "nowhere", 7);
  Link(0, "root", 0);
  Variable(0, "w", "w", "w");
  EXPECT_THAT(NamesOf(*Open()->Variables()), ElementsAre("w"));
  WriteRawBundle(prefix_, {{kObjectGraphTensor, BundleDtype::kString, Shape(), "\xff"}});
  const absl::Status status = BundleSource::Open(prefix_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("not an object graph"));
}

}  // namespace
}  // namespace keelson
