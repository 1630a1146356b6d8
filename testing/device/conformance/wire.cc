#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/wire/value_codec.h"
#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

using Bytes = std::vector<uint8_t>;
using Floats = reference::Floats;

constexpr uint8_t kUntouchedByte = 0xa5;

const WireFormat kFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16,
                               WireFormat::kInt8, WireFormat::kTopK};
const WireFormat kValueFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                    WireFormat::kBfloat16};

// A layout of blocks of these sizes; top-k sends a tenth of each, and all of the first.
WireLayout LayoutOf(WireFormat format, const std::vector<int64_t>& sizes) {
  WireLayout layout{format, {}, 0, 0};
  for (const int64_t size : sizes) {
    const bool top_k = format == WireFormat::kTopK;
    const int64_t count = !top_k ? 0 : layout.blocks.empty() ? size : (size + 9) / 10;
    layout.blocks.push_back({layout.num_elements, size, layout.bytes, count});
    layout.num_elements += size;
    const size_t bytes = top_k ? TopKBytes(count) : EncodedBytes(format, size);
    layout.bytes += (bytes + 3) / 4 * 4;
  }
  return layout;
}

std::vector<std::vector<int64_t>> BlockSizes() {
  return {{1}, {5}, {1024}, {7, 1, 33}, {1023, 1024, 1025, 3, 2048, 2, 31}, {129, 4097, 64, 5003}};
}

size_t BytesOf(const WireLayout& layout, const WireBlock& block) {
  return layout.format == WireFormat::kTopK ? TopKBytes(block.top_k_count)
                                            : EncodedBytes(layout.format, block.num_elements);
}

// Encodes by the codec of the host.
class HostEncoder {
 public:
  explicit HostEncoder(WireLayout layout)
      : layout_(std::move(layout)), residual_(layout_.num_elements, 0.0f) {}

  // The bytes of each block, without the padding.
  std::vector<Bytes> Encode(const Floats& gradient) {
    std::vector<Bytes> blocks;
    for (const WireBlock& block : layout_.blocks) {
      const size_t first = block.first_element;
      const size_t size = block.num_elements;
      const auto from = absl::MakeConstSpan(gradient).subspan(first, size);
      const auto residual = absl::MakeSpan(residual_).subspan(first, size);
      Bytes bytes(BytesOf(layout_, block));
      if (IsElementwise(layout_.format)) {
        EncodeElements(layout_.format, from, bytes.data());
      } else if (layout_.format == WireFormat::kInt8) {
        EncodeInt8(from, residual, bytes.data());
      } else {
        std::string top_k;
        EncodeTopK(from, block.top_k_count, residual, &top_k);
        bytes.assign(top_k.begin(), top_k.end());
      }
      blocks.push_back(std::move(bytes));
    }
    return blocks;
  }

  // The same of the bytes that a device wrote.
  std::vector<Bytes> Split(absl::Span<const uint8_t> bytes) const {
    std::vector<Bytes> blocks;
    for (const WireBlock& block : layout_.blocks) {
      const auto part = bytes.subspan(block.offset, BytesOf(layout_, block));
      blocks.emplace_back(part.begin(), part.end());
    }
    return blocks;
  }

 private:
  const WireLayout layout_;
  Floats residual_;
};

// Replaces each NaN among a block's float32 words by the same one, since the NaN that a sum yields
// depends on the processor.
Bytes WithOneNan(WireFormat format, Bytes bytes) {
  if (IsElementwise(format)) return bytes;
  const size_t first = format == WireFormat::kInt8 ? 0 : sizeof(uint32_t);
  const size_t step =
      format == WireFormat::kInt8 ? sizeof(float) + size_t{kInt8GroupElements} : sizeof(float);
  for (size_t i = first; i + sizeof(float) <= bytes.size(); i += step) {
    float word;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    if (std::isnan(word)) std::memcpy(bytes.data() + i, &kNan, sizeof(kNan));
  }
  return bytes;
}

void ExpectSameBlocks(WireFormat format, const std::vector<Bytes>& actual,
                      const std::vector<Bytes>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    // Not EXPECT_EQ, which would print all of them.
    const Bytes one = WithOneNan(format, actual[i]), other = WithOneNan(format, expected[i]);
    ASSERT_EQ(one.size(), other.size());
    const auto differ = std::mismatch(one.begin(), one.end(), other.begin());
    ASSERT_TRUE(differ.first == one.end())
        << "block " << i << " of " << expected.size() << ": byte " << differ.first - one.begin()
        << " of " << one.size() << ": " << int{*differ.first} << ", expected "
        << int{*differ.second};
  }
}

// Infinities and not-a-numbers, numbers too large or too small for float16, ties.
Floats Extremes(Floats x, size_t step) {
  const float extremes[] = {kNan,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            -0.0f,
                            1e-40f,
                            -3e-8f,
                            65519.0f,
                            65520.0f,
                            -1e38f,
                            std::bit_cast<float>(0xff812345u),
                            std::bit_cast<float>(0x3f808000u),
                            std::bit_cast<float>(0x3f818000u),
                            std::numeric_limits<float>::max()};
  for (size_t i = 0; i < x.size(); i += step) x[i] = extremes[(i / step) % std::size(extremes)];
  return x;
}

TEST_P(DeviceConformanceTest, EncodesAsTheHostDoes) {
  for (const WireFormat format : kFormats) {
    for (const std::vector<int64_t>& sizes : BlockSizes()) {
      SCOPED_TRACE(testing::Message()
                   << WireFormatName(format) << " " << testing::PrintToString(sizes));
      const WireLayout layout = LayoutOf(format, sizes);
      HostEncoder host(layout);
      const auto encoder = *device_->NewGradientEncoder(layout);
      const auto done = *device_->NewEvent();
      const auto memory = *device_->AllocateHost(layout.bytes + 128);
      const absl::Span<uint8_t> to = memory->bytes().subspan(64, layout.bytes);
      for (uint64_t step = 0; step < 5; ++step) {
        SCOPED_TRACE(step);
        Floats gradient = Random(layout.num_elements, step);
        for (float& value : gradient) value *= 0.1f + static_cast<float>(step);
        // Equal magnitudes, nothing but zeros in a group, and what is not finite.
        if (step == 1) {
          for (float& value : gradient) value = std::round(value * 4) / 4;
        }
        if (step == 3) gradient = Extremes(std::move(gradient), 97);
        if (step == 4) std::fill(gradient.begin(), gradient.end(), 0.0f);
        std::memset(memory->bytes().data(), kUntouchedByte, memory->bytes().size());
        const Memory on_device = Input(gradient);
        device_->Download(*on_device, nullptr, encoder.get(), to, done.get());
        const absl::Status status = device_->Await(*done);
        ASSERT_TRUE(status.ok()) << status;
        ExpectSameBlocks(format, host.Split(to), host.Encode(gradient));
        EXPECT_EQ(Bytes(memory->bytes().begin(), memory->bytes().begin() + 64),
                  Bytes(64, kUntouchedByte));
        EXPECT_EQ(Bytes(memory->bytes().end() - 64, memory->bytes().end()),
                  Bytes(64, kUntouchedByte));
      }
    }
  }
}

TEST_P(DeviceConformanceTest, EncodesALargeVariableAsTheHostDoes) {
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kTopK}) {
    SCOPED_TRACE(WireFormatName(format));
    const WireLayout layout = LayoutOf(format, {5, 200'003});
    HostEncoder host(layout);
    const auto encoder = *device_->NewGradientEncoder(layout);
    const auto done = *device_->NewEvent();
    const auto memory = *device_->AllocateHost(layout.bytes);
    for (uint64_t step = 0; step < 2; ++step) {
      SCOPED_TRACE(step);
      const Floats gradient = Random(layout.num_elements, 90 + step);
      device_->Download(*Input(gradient), nullptr, encoder.get(), memory->bytes(), done.get());
      ASSERT_TRUE(device_->Await(*done).ok());
      ExpectSameBlocks(format, host.Split(memory->bytes()), host.Encode(gradient));
    }
  }
}

TEST_P(DeviceConformanceTest, ErrorFeedbackBelongsToTheEncoder) {
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kTopK}) {
    SCOPED_TRACE(WireFormatName(format));
    const WireLayout layout = LayoutOf(format, {3, 1500});
    std::vector<HostEncoder> hosts(2, HostEncoder(layout));
    std::vector<std::unique_ptr<GradientEncoder>> encoders;
    for (int i = 0; i < 2; ++i) encoders.push_back(*device_->NewGradientEncoder(layout));
    const auto done = *device_->NewEvent();
    const auto memory = *device_->AllocateHost(layout.bytes);
    for (uint64_t step = 0; step < 6; ++step) {
      SCOPED_TRACE(step);
      const size_t which = step % 3 == 0 ? 0 : 1;
      const Floats gradient = Random(layout.num_elements, 20 + step);
      device_->Download(*Input(gradient), nullptr, encoders[which].get(), memory->bytes(),
                        done.get());
      ASSERT_TRUE(device_->Await(*done).ok());
      ExpectSameBlocks(format, hosts[which].Split(memory->bytes()), hosts[which].Encode(gradient));
    }
  }
}

TEST_P(DeviceConformanceTest, AClosedGateKeepsErrorFeedback) {
  for (const WireFormat format : kFormats) {
    for (const float closed :
         {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      SCOPED_TRACE(testing::Message() << WireFormatName(format) << " " << closed);
      const WireLayout layout = LayoutOf(format, {1025, 2, 300});
      HostEncoder host(layout);
      const auto encoder = *device_->NewGradientEncoder(layout);
      const auto done = *device_->NewEvent();
      const auto memory = *device_->AllocateHost(layout.bytes);
      const Memory gate = Exact({1, kNan}), gradient = Allocate(layout.num_elements);
      for (uint64_t step = 0; step < 6; ++step) {
        SCOPED_TRACE(step);
        const bool open = step % 3 != 1;
        const Floats values = Random(layout.num_elements, 30 + step);
        device_->CopyToDevice(values, gradient.get());
        // The gate is read when its turn comes, not before and not after.
        device_->Fill(open ? -1e30f : closed, 1, gate.get());
        device_->Download(*gradient, gate.get(), encoder.get(), memory->bytes(), done.get());
        device_->WaitFor(*done);
        device_->Fill(open ? closed : 1.0f, 1, gate.get());
        ASSERT_TRUE(device_->Await(*done).ok());
        if (open) ExpectSameBlocks(format, host.Split(memory->bytes()), host.Encode(values));
      }
    }
  }
}

TEST_P(DeviceConformanceTest, ADownloadComesBetweenTheOperations) {
  for (const WireFormat format : {WireFormat::kFloat32, WireFormat::kBfloat16}) {
    SCOPED_TRACE(WireFormatName(format));
    constexpr int kRounds = 30;
    constexpr int64_t kElements = 2000;
    const WireLayout layout = LayoutOf(format, {999, 1001});
    const auto encoder = *device_->NewGradientEncoder(layout);
    std::vector<std::unique_ptr<HostMemory>> memories;
    const auto done = *device_->NewEvent();
    const Memory gradient = Allocate(kElements), one = Exact(Floats(kElements, 1.0f));
    for (int i = 0; i < kRounds; ++i) {
      memories.push_back(*device_->AllocateHost(layout.bytes));
      device_->Axpy(1, kElements, *one, gradient.get());
      device_->Download(*gradient, nullptr, encoder.get(), memories.back()->bytes(), done.get());
      device_->WaitFor(*done);
    }
    device_->Fill(-5, kElements, gradient.get());
    // Copies in one direction are executed in their order: the last is done, so all are.
    ASSERT_TRUE(device_->Await(*done).ok());
    HostEncoder host(layout);
    for (int i = 0; i < kRounds; ++i) {
      SCOPED_TRACE(i);
      ExpectSameBlocks(format, host.Split(memories[i]->bytes()),
                       host.Encode(Floats(kElements, static_cast<float>(i + 1))));
    }
  }
}

TEST_P(DeviceConformanceTest, DecodesAsTheHostDoes) {
  for (const WireFormat format : kValueFormats) {
    for (int64_t n : {1, 2, 3, 4, 5, 31, 33, 1023, 1025, 40003}) {
      SCOPED_TRACE(testing::Message() << WireFormatName(format) << " " << n);
      const size_t bytes = EncodedBytes(format, n);
      const auto decoder = *device_->NewValueDecoder(format, n);
      const auto done = *device_->NewEvent();
      const auto memory = *device_->AllocateHost(bytes + 64);
      const absl::Span<uint8_t> from = memory->bytes().subspan(64, bytes);
      EncodeElements(format, Extremes(Random(n, 40), 3), from.data());
      Floats expected(n);
      DecodeElements(format, from.data(), absl::MakeSpan(expected));
      const Output values = Garbage(n);
      device_->Upload(from, nullptr, decoder.get(), values.get(), done.get());
      device_->WaitFor(*done);
      const Floats actual = Read(values);
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i])) << i;
      }
      EXPECT_TRUE(device_->Await(*done).ok());
    }
  }
}

// Step by step: an operation uses the values, then the next ones overwrite them.
TEST_P(DeviceConformanceTest, AnUploadWaitsForItsEvent) {
  constexpr int64_t kElements = 3001;
  constexpr size_t kRounds = 20;
  for (const WireFormat format : {WireFormat::kFloat32, WireFormat::kFloat16}) {
    for (const bool with_event : {true, false}) {
      SCOPED_TRACE(testing::Message() << WireFormatName(format) << " " << with_event);
      const auto decoder = *device_->NewValueDecoder(format, kElements);
      std::vector<std::unique_ptr<HostMemory>> memories;
      const auto used = *device_->NewEvent(), done = *device_->NewEvent();
      const Memory values = Allocate(kElements);
      const Output sum = InOut(Floats(kElements, 0.0f));
      for (size_t i = 0; i < kRounds; ++i) {
        memories.push_back(*device_->AllocateHost(EncodedBytes(format, kElements)));
        EncodeElements(format, Floats(kElements, static_cast<float>(i * i)),
                       memories.back()->bytes().data());
        device_->Upload(memories.back()->bytes(), with_event ? used.get() : nullptr, decoder.get(),
                        values.get(), done.get());
        device_->WaitFor(*done);
        device_->Axpy(1, kElements, *values, sum.get());
        device_->Record(used.get());
      }
      EXPECT_EQ(Read(sum), Floats(kElements, 2470.0f));  // the sum of the squares below 20
    }
  }
}

TEST_P(DeviceConformanceTest, UploadsHappenInTheirOrder) {
  constexpr int64_t kElements = 1000;
  const auto decoder = *device_->NewValueDecoder(WireFormat::kBfloat16, kElements);
  const auto first = *device_->AllocateHost(2 * kElements),
             second = *device_->AllocateHost(2 * kElements);
  EncodeElements(WireFormat::kBfloat16, Floats(kElements, 1.0f), first->bytes().data());
  EncodeElements(WireFormat::kBfloat16, Floats(kElements, 2.0f), second->bytes().data());
  const auto before = *device_->NewEvent(), done = *device_->NewEvent(),
             ignored = *device_->NewEvent();
  const Memory values = Allocate(kElements);
  device_->Fill(3, kElements, values.get());
  device_->Record(before.get());
  device_->Upload(first->bytes(), before.get(), decoder.get(), values.get(), ignored.get());
  device_->Upload(second->bytes(), before.get(), decoder.get(), values.get(), done.get());
  ASSERT_TRUE(device_->Await(*done).ok());
  EXPECT_TRUE(device_->Passed(*ignored));
  // The host may write the bytes again.
  std::memset(first->bytes().data(), 0, 2 * kElements);
  std::memset(second->bytes().data(), 0, 2 * kElements);
  EXPECT_EQ(Read(*values), Floats(kElements, 2.0f));
}

TEST_P(DeviceConformanceTest, CopiesOfNothing) {
  const WireLayout layout{WireFormat::kInt8, {}, 0, 0};
  const auto encoder = *device_->NewGradientEncoder(layout);
  const auto decoder = *device_->NewValueDecoder(WireFormat::kFloat16, 0);
  const auto done = *device_->NewEvent();
  const Memory empty = Allocate(0);
  device_->Download(*empty, nullptr, encoder.get(), {}, done.get());
  EXPECT_TRUE(device_->Await(*done).ok());
  device_->Upload({}, nullptr, decoder.get(), empty.get(), done.get());
  EXPECT_TRUE(device_->Await(*done).ok());
}

TEST_P(DeviceConformanceTest, CopiesCheckTheirOperands) {
  const WireLayout layout = LayoutOf(WireFormat::kFloat32, {6});
  struct Case {
    bool download;
    int64_t floats;
    size_t bytes;
    const char* message;
  };
  for (const Case& c : {Case{true, 5, 24, "Download: expected memory of 6 floats, found 5"},
                        Case{true, 6, 20, "Download: expected 24 bytes of the host, found 20"},
                        Case{false, 5, 24, "Upload: expected memory of 6 floats, found 5"},
                        Case{false, 6, 20, "Upload: expected 24 bytes of the host, found 20"}}) {
    SCOPED_TRACE(c.message);
    const auto device = *GetParam().create(0);
    const auto encoder = *device->NewGradientEncoder(layout);
    const auto decoder = *device->NewValueDecoder(WireFormat::kFloat32, 6);
    const auto host = *device->AllocateHost(c.bytes);
    const auto memory = *device->Allocate(c.floats);
    const auto done = *device->NewEvent();
    if (c.download) {
      device->Download(*memory, nullptr, encoder.get(), host->bytes(), done.get());
    } else {
      device->Upload(host->bytes(), nullptr, decoder.get(), memory.get(), done.get());
    }
    const absl::Status status = device->Await(*done);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(c.message));
    EXPECT_TRUE(device->Passed(*done));
  }
}

}  // namespace
}  // namespace keelson
