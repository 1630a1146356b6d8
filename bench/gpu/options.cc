#include "bench/gpu/options.h"

#include <algorithm>
#include <array>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"

namespace keelson::bench {
namespace {

constexpr int64_t kMiB = 1 << 20;

constexpr std::array<const char*, 4> kParts = {"limits", "products", "kernels", "step"};

void SetRealSizes(GpuBenchOptions* options) {
  options->copy_bytes = 1024 * kMiB;
  options->cross_bytes = 256 * kMiB;
  options->tensor_bytes = 512 * kMiB;
  options->square = 8192;
  options->dense = {4096, 2048, 2048};
  options->steps = {
      {.name = "depth 1", .precision = Precision::kFloat32, .depth = 1},
      {.name = "depth 2", .precision = Precision::kFloat32, .depth = 2},
      {.name = "depth 2", .precision = Precision::kTf32, .depth = 2},
      {.name = "depth 2", .precision = Precision::kBfloat16, .wire = Wire::kBfloat16, .depth = 2},
      {.name = "much to compute", .precision = Precision::kFloat32, .depth = 2, .batch = 32768},
  };
}

void SetSmokeSizes(GpuBenchOptions* options) {
  options->timing = {.repetitions = 2, .milliseconds = 0.001};
  options->copy_bytes = options->cross_bytes = 1 << 16;
  options->tensor_bytes = 1 << 17;
  options->square = 64;
  options->dense = {64, 32, 32};
  options->step.model = {.layers = 3, .units = 32};
  options->step.steps = 2;
  options->steps = {
      {.name = "depth 1", .precision = Precision::kFloat32, .depth = 1, .batch = 16},
      {.name = "depth 2",
       .precision = Precision::kBfloat16,
       .wire = Wire::kBfloat16,
       .depth = 2,
       .batch = 16},
  };
}

}  // namespace

bool GpuBenchOptions::Measures(const std::string& part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::variant<GpuBenchOptions, int> ParseGpuBenchOptions(int argc, const char* const* argv) {
  using Format = GpuBenchOptions::Format;
  CLI::App app(
      "Measures a GPU's limits, and how close matrix products, kernels and whole training steps "
      "come to them; docs/gpu.md. Without a GPU it says so and exits with 2.");
  GpuBenchOptions options;
  options.parts = {kParts.begin(), kParts.end()};
  options.precisions = {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16};
  bool json = false, markdown = false;
  int repeat = 0;
  int64_t batch = 0;
  app.add_option("--gpu", options.ordinal, "Its number")->check(NonNegativeNumber());
  app.add_option("--parts", options.parts,
                 "Only these, separated by commas: limits, products, kernels, step")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(kParts.begin(), kParts.end())));
  app.add_option("--precisions", options.precisions,
                 "Of matrix products, separated by commas: float32, tf32, bfloat16")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Precision>{{"float32", Precision::kFloat32},
                                           {"tf32", Precision::kTf32},
                                           {"bfloat16", Precision::kBfloat16}}));
  app.add_option("--repeat", repeat, "Repetitions of each measurement (default: 15)")
      ->check(PositiveNumber());
  app.add_option("--batch", batch, "Of every training step (default: 4096, and one of 32768)")
      ->check(PositiveNumber());
  app.add_flag("--smoke", options.smoke, "Tiny sizes: shows that it runs, measures nothing");
  app.add_flag("--probe", options.probe, "Only says what the GPU is");
  app.add_flag("--json", json, "One JSON object on standard output, tables on standard error");
  app.add_flag("--markdown", markdown, "Tables as in docs/gpu.md");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    LogError(error.what(), "; see --help");
    return kExitPermanent;
  }
  if (json) options.format = Format::kJson;
  if (markdown) options.format = Format::kMarkdown;
  options.smoke ? SetSmokeSizes(&options) : SetRealSizes(&options);
  if (repeat > 0) options.timing.repetitions = repeat;
  for (StepCase& step : options.steps) {
    if (batch > 0) step.batch = batch;
  }
  options.step.device = absl::StrCat("cuda:", options.ordinal);
  return options;
}

}  // namespace keelson::bench
