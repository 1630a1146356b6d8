// FTRL beside TensorFlow's own (tests/interop/ftrl_golden.py).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/optim/optim_testing.h"
#include "core/optim/optimizer.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

std::string GoldenPath() {
  const char* const source = std::getenv("KEELSON_SOURCE_DIR");
  return absl::StrCat(source == nullptr ? "." : source, "/core/optim/golden/ftrl.txt");
}

// Numbers between spaces.
std::vector<float> Numbers(absl::string_view text) {
  std::vector<float> numbers;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    float number = 0;
    EXPECT_TRUE(absl::SimpleAtof(word, &number)) << word;
    numbers.push_back(number);
  }
  return numbers;
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& expected,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5f * std::max(1.0f, std::abs(expected[i])))
        << what << ", element " << i;
    EXPECT_EQ(found[i] == 0, expected[i] == 0) << what << ", element " << i;
  }
}

// One variable, trained as the file's case is.
class Trained {
 public:
  explicit Trained(const std::vector<float>& settings)
      : optimizer_(Create(absl::StrCat(
            "ftrl { initial_accumulator: ", settings[0], " l1: ", settings[1], " l2: ", settings[2],
            " l2_shrinkage: ", settings[3], " beta: ", settings[4], " }"))),
        accumulator_(settings[0]) {}

  void Update(float rate, const std::vector<float>& gradient) {
    if (values.empty()) {
      values.resize(gradient.size());
      n.assign(gradient.size(), accumulator_);
      z.resize(gradient.size());
    }
    const std::vector<const float*> in = {n.data(), z.data()};
    std::vector<float*> out = {n.data(), z.data()};
    optimizer_->Update({values, in, EncodedGradient(gradient.data()), absl::MakeSpan(values),
                        absl::MakeSpan(out), rate, updates_++});
  }

  std::vector<float> values, n, z;

 private:
  const std::unique_ptr<Optimizer> optimizer_;
  const float accumulator_;
  int64_t updates_ = 0;
};

TEST(FtrlGoldenTest, AgreesWithTensorFlow) {
  const absl::StatusOr<std::string> golden = ReadFile(GoldenPath());
  ASSERT_TRUE(golden.ok()) << golden.status();
  const std::vector<std::string> lines = absl::StrSplit(*golden, '\n');
  std::unique_ptr<Trained> trained;
  int cases = 0, steps = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::string_view line = lines[i];
    if (absl::ConsumePrefix(&line, "case")) {
      trained = std::make_unique<Trained>(Numbers(line));
      ++cases;
    } else if (absl::ConsumePrefix(&line, "step")) {
      ASSERT_NE(trained, nullptr);
      ASSERT_LT(i + 4, lines.size());
      trained->Update(Numbers(line).at(0), Numbers(lines[i + 1]));
      const std::string where = absl::StrCat("case ", cases, ", step ", ++steps);
      ExpectNear(trained->values, Numbers(lines[i + 2]), where + ": values");
      ExpectNear(trained->n, Numbers(lines[i + 3]), where + ": n");
      ExpectNear(trained->z, Numbers(lines[i + 4]), where + ": z");
    }
  }
  EXPECT_EQ(cases, 5);
  EXPECT_EQ(steps, 60);
}

}  // namespace
}  // namespace keelson
