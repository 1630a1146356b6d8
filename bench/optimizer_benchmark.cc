// What an update of a block costs, by rule and wire format, beside memcpy. "bytes_per_second" of an
// update counts the gradient's bytes, as a push does; the counter "touched" counts all bytes read
// and written, as memcpy's does. A block of 1 MiB of values stays in the cache, 256 of them do not.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "core/optim/optimizer.h"
#include "core/wire/wire_format.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

constexpr size_t kBlockElements = (size_t{1} << 20) / sizeof(float);

struct Rule {
  const char* name;
  const char* config;
};
constexpr Rule kRules[] = {
    {"sgd", "sgd {}"},
    {"momentum", "momentum {}"},
    {"nesterov", "momentum { nesterov: true }"},
    {"adagrad", "adagrad {}"},
    {"rmsprop", "rmsprop {}"},
    {"adam", "adam {}"},
    {"adamw", "adamw {}"},
};
constexpr WireFormat kFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                   WireFormat::kBfloat16, WireFormat::kInt8};

std::unique_ptr<Optimizer> Create(const char* text) {
  v1::OptimizerConfig config;
  if (!google::protobuf::TextFormat::ParseFromString(text, &config)) return nullptr;
  return CreateOptimizer(config).value();
}

double GradientBytes(WireFormat format, size_t elements) {
  return format == WireFormat::kInt8 ? static_cast<double>(elements)
                                     : static_cast<double>(elements * ElementBytes(format));
}

// Updates `blocks` blocks in turn, in place.
void BM_Update(benchmark::State& state, const char* config, WireFormat format, size_t blocks) {
  const std::unique_ptr<Optimizer> optimizer = Create(config);
  const size_t n = blocks * kBlockElements;
  std::vector<float> values(n, 1.0f);
  std::vector<std::vector<float>> slots(optimizer->slots().size(), std::vector<float>(n, 1.0f));
  const std::vector<uint8_t> gradient(GradientBytes(format, n), 0);
  size_t begin = 0;
  for (auto _ : state) {
    std::vector<float*> slots_out;
    for (auto& slot : slots) slots_out.push_back(slot.data() + begin);
    const std::vector<const float*> slots_in(slots_out.begin(), slots_out.end());
    const auto block = absl::MakeSpan(values).subspan(begin, kBlockElements);
    const size_t offset = GradientBytes(format, begin);
    optimizer->Update({block, slots_in, EncodedGradient(format, gradient.data() + offset), block,
                       absl::MakeSpan(slots_out), 0.1f, 3});
    benchmark::ClobberMemory();
    begin = (begin + kBlockElements) % n;
  }
  const double gradient_bytes = GradientBytes(format, kBlockElements);
  const double state_bytes =
      static_cast<double>((1 + slots.size()) * kBlockElements * sizeof(float) * 2);
  const auto iterations = static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<int64_t>(iterations * gradient_bytes));
  state.counters["touched"] =
      benchmark::Counter(iterations * (gradient_bytes + state_bytes), benchmark::Counter::kIsRate);
}

// Copies one block to another, of `blocks`; counts what is read and what is written.
void BM_Memcpy(benchmark::State& state, size_t blocks) {
  const std::vector<float> from(blocks * kBlockElements, 1.0f);
  std::vector<float> to(from.size());
  size_t begin = 0;
  for (auto _ : state) {
    std::memcpy(to.data() + begin, from.data() + begin, kBlockElements * sizeof(float));
    benchmark::ClobberMemory();
    begin = (begin + kBlockElements) % from.size();
  }
  const double copied =
      static_cast<double>(state.iterations()) * static_cast<double>(kBlockElements * sizeof(float));
  state.SetBytesProcessed(static_cast<int64_t>(copied));
  state.counters["touched"] = benchmark::Counter(2 * copied, benchmark::Counter::kIsRate);
}

void RegisterAll() {
  for (const size_t blocks : {size_t{1}, size_t{256}}) {
    const std::string size = absl::StrCat("/blocks:", blocks);
    benchmark::RegisterBenchmark(absl::StrCat("memcpy", size).c_str(), BM_Memcpy, blocks);
    for (const Rule& rule : kRules) {
      for (const WireFormat format : kFormats) {
        benchmark::RegisterBenchmark(
            absl::StrCat(rule.name, "/", WireFormatName(format), size).c_str(), BM_Update,
            rule.config, format, blocks);
      }
    }
  }
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  keelson::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
