// What encoding and decoding a block of 1 MiB of float32 costs, by wire format, beside memcpy.
// "bytes_per_second" counts the float32 bytes.
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

constexpr size_t kElements = (size_t{1} << 20) / sizeof(float);
constexpr WireFormat kElementwise[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                       WireFormat::kBfloat16};

std::vector<float> RandomGradient() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1e-3f);
  std::vector<float> x(kElements);
  for (float& e : x) e = normal(random);
  return x;
}

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kElements * sizeof(float)));
}

void BM_Memcpy(benchmark::State& state) {
  const std::vector<float> from = RandomGradient();
  std::vector<float> to(kElements);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kElements * sizeof(float));
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_Encode(benchmark::State& state, WireFormat format) {
  const std::vector<float> from = RandomGradient();
  std::vector<uint8_t> to(EncodedBytes(format, kElements));
  for (auto _ : state) {
    EncodeElements(format, from, to.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_Decode(benchmark::State& state, WireFormat format) {
  std::vector<float> x = RandomGradient();
  std::vector<uint8_t> from(EncodedBytes(format, kElements));
  EncodeElements(format, x, from.data());
  for (auto _ : state) {
    DecodeElements(format, from.data(), absl::MakeSpan(x));
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_AllFinite(benchmark::State& state, WireFormat format) {
  const std::vector<float> x = RandomGradient();
  std::vector<uint8_t> from(EncodedBytes(format, kElements));
  EncodeElements(format, x, from.data());
  for (auto _ : state) benchmark::DoNotOptimize(AllFinite(format, from.data(), kElements));
  SetBytes(state);
}

void BM_EncodeInt8(benchmark::State& state) {
  const std::vector<float> from = RandomGradient();
  std::vector<float> residual(kElements);
  std::vector<uint8_t> to(EncodedBytes(WireFormat::kInt8, kElements));
  for (auto _ : state) {
    EncodeInt8(from, absl::MakeSpan(residual), to.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void BM_DecodeInt8(benchmark::State& state) {
  const std::vector<uint8_t> from(kElements, 3);
  std::vector<float> to(kElements);
  for (auto _ : state) {
    for (size_t begin = 0; begin < kElements; begin += kInt8GroupElements) {
      DecodeInt8Group(0.1f, from.data() + begin,
                      absl::MakeSpan(to).subspan(begin, kInt8GroupElements));
    }
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

// Keeps 1 of `state.range(0)` elements.
void BM_EncodeTopK(benchmark::State& state) {
  const std::vector<float> from = RandomGradient();
  std::vector<float> residual(kElements);
  std::string to;
  for (auto _ : state) {
    to.clear();
    EncodeTopK(from, static_cast<int64_t>(kElements) / state.range(0), absl::MakeSpan(residual),
               &to);
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

void RegisterAll() {
  benchmark::RegisterBenchmark("memcpy", BM_Memcpy);
  for (const WireFormat format : kElementwise) {
    const std::string name(WireFormatName(format));
    benchmark::RegisterBenchmark(absl::StrCat("encode/", name).c_str(), BM_Encode, format);
    benchmark::RegisterBenchmark(absl::StrCat("decode/", name).c_str(), BM_Decode, format);
    benchmark::RegisterBenchmark(absl::StrCat("all_finite/", name).c_str(), BM_AllFinite, format);
  }
  benchmark::RegisterBenchmark("encode/int8", BM_EncodeInt8);
  benchmark::RegisterBenchmark("decode/int8", BM_DecodeInt8);
  benchmark::RegisterBenchmark("encode/top_k", BM_EncodeTopK)->Arg(1000)->Arg(100)->Arg(10);
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
