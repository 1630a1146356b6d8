// libFuzzer program for TF_CONFIG. The kind of input is the role of the program that reads it, or
// none.

#include <iterator>
#include <optional>

#include "core/cluster/tf_config.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

constexpr Role kRoles[] = {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator};
// A message may repeat the input, and has 8 bytes for a control character of it.
constexpr size_t kMaxEscapedBytes = 8;
constexpr size_t kMaxMessageBytes = 400;

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const char role : {0, 1, 2, 3, 4}) {
    AddSeeds(role,
             {R"({"cluster":{"chief":["c:1"],"ps":["p:1","q:2"],"worker":["w:1"]},)"
              R"("task":{"type":"worker","index":0},"environment":"cloud"})",
              R"({"sparseCluster":{"worker":{"2":"w:1"},"ps":["[::1]:1"]},)"
              R"("task":{"type":"ps","index":"2"}})"},
             &seeds);
  }
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  constexpr size_t kNumRoles = std::size(kRoles);
  std::optional<Role> role;
  if (kind % (kNumRoles + 1) < kNumRoles) role = kRoles[kind % (kNumRoles + 1)];
  const absl::StatusOr<ClusterSpec> spec = ParseTfConfig(input, role);
  if (!spec.ok()) {
    Check(spec.status().message().size() <= kMaxEscapedBytes * input.size() + kMaxMessageBytes,
          "messages are bounded");
    return;
  }
  Check(spec->self.index >= 0, "indexes are not negative");
  // A dense cluster lists the task itself, except for an evaluator.
  if (spec->distributed && !spec->sparse && spec->self.role != Role::kEvaluator) {
    Check(spec->SelfAddress().has_value(), "a task of a dense cluster has an address");
  }
}

}  // namespace keelson
