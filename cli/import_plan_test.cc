#include "cli/import_plan.h"

#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Variables "a" and "b" [2], and what is no variable: a counter, and complex numbers.
MemoryTensors TestTensors() {
  MemoryTensors tensors;
  tensors.AddValues<float>("a", BundleDtype::kFloat32, Shape({2}), {1, 2});
  tensors.AddValues<float>("b", BundleDtype::kFloat32, Shape({2}), {3, 4});
  tensors.AddValues<float>("z", BundleDtype::kComplex64, Shape({1}), {5, 6});
  tensors.AddValues<int64_t>("global_step", BundleDtype::kInt64, Shape(), {3});
  return tensors;
}

// "variable=tensor"; without a tensor: "variable=".
std::vector<std::string> Imported(const ImportPlan& plan) {
  std::vector<std::string> imported;
  for (const ImportedVariable& variable : plan.variables) {
    imported.push_back(variable.spec.name + "=" + variable.source.name);
  }
  return imported;
}

TEST(ImportPlanTest, TakesVariablesAndWhatIsRenamed) {
  MemoryTensors tensors = TestTensors();
  const absl::StatusOr<ImportPlan> plan = PlanImport(&tensors, {"b=x", "global_step=step"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Imported(*plan), ElementsAre("a=a", "step=global_step", "x=b"));
  EXPECT_THAT(plan->left_out, ElementsAre("z"));
}

TEST(ImportPlanTest, BadRenamesAreRefused) {
  MemoryTensors tensors = TestTensors();
  const struct {
    std::vector<std::string> renames;
    const char* text;
  } cases[] = {
      {{"a"}, "--map a: expected old=new"},
      {{"=a"}, "--map =a: expected old=new"},
      {{"a="}, "--map a=: expected old=new"},
      {{"a=x", "a=y"}, "--map a=y: the tensor is renamed twice"},
      {{"c=x"}, "--map c=x: the source has no numbers named 'c'"},
      {{"a=b"}, "two tensors become 'b': 'a' and 'b'"},
  };
  for (const auto& c : cases) {
    for (const absl::Status& status : {PlanImport(&tensors, c.renames).status(),
                                       PlanImportOf({}, false, &tensors, c.renames).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
    }
  }
}

TEST(ImportPlanTest, OfAModelItsVariablesAlone) {
  MemoryTensors tensors = TestTensors();
  const std::vector<VariableSpec> model = {{"a", Shape({2}), Initializer()},
                                           {"c", Shape({3}), Initializer()}};
  EXPECT_EQ(PlanImportOf(model, false, &tensors, {}).status(),
            absl::InvalidArgumentError(
                "the source does not fit the model: c is missing; --map old=new renames what it "
                "has: a [2], b [2], global_step []"));
  const absl::StatusOr<ImportPlan> plan = PlanImportOf(model, true, &tensors, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Imported(*plan), ElementsAre("a=a", "c="));
  EXPECT_THAT(plan->left_out, ElementsAre("b", "global_step", "z"));
}

TEST(ImportPlanTest, EveryTensorThatDoesNotFitIsNamed) {
  MemoryTensors tensors = TestTensors();
  const std::vector<VariableSpec> model = {{"a", Shape({3}), Initializer()},
                                           {"z", Shape({1}), Initializer()}};
  EXPECT_EQ(PlanImportOf(model, /*initialize_missing=*/true, &tensors, {}).status(),
            absl::InvalidArgumentError(
                "the source does not fit the model: a expected float32 [3], found float32 [2]; "
                "z expected float32 [1], found complex64 [1]; --map old=new renames what it has: "
                "a [2], b [2], global_step []"));
}

}  // namespace
}  // namespace keelson
