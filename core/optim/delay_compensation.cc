#include "core/optim/delay_compensation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/status_macros.h"
#include "core/optim/compensate.h"
#include "core/optim/validate.h"

namespace keelson {
namespace {

// The number of elements corrected at a time: they stay in the first-level cache until the rule
// reads them.
constexpr size_t kChunkElements = 2048;
constexpr size_t kMaxRuleSlots = 2;

std::vector<SlotSpec> WithMeanSquare(std::vector<SlotSpec> slots) {
  slots.push_back({"MeanSquare", 0});
  return slots;
}

const uint8_t* ElementOf(const EncodedGradient& gradient, size_t i) {
  const size_t width = gradient.format == WireFormat::kInt8 ? 1 : ElementBytes(gradient.format);
  return gradient.data + i * width;
}

class DelayCompensatedOptimizer : public Optimizer {
 public:
  DelayCompensatedOptimizer(std::unique_ptr<Optimizer> rule,
                            const DelayCompensationRule& compensation)
      : Optimizer(WithMeanSquare(rule->slots())),
        rule_(std::move(rule)),
        compensation_(compensation) {}

  bool reads_worker_values() const override { return true; }

  std::vector<std::pair<std::string, float>> ScalarState(int64_t updates) const override {
    return rule_->ScalarState(updates);
  }

  void Update(const UpdateArgs& args) const override {
    const MeanSquareArrays mean_square = {args.slots_in.back(), args.slots_out.back()};
    // With lambda 0 the gradient keeps its bits, the sign of a zero among them.
    if (args.worker_values.empty() || compensation_.lambda == 0) {
      UpdateMeanSquare(compensation_, args.gradient, args.values_in.size(), mean_square);
      UpdateArgs rest = args;
      rest.slots_in.remove_suffix(1);
      rest.slots_out.remove_suffix(1);
      rule_->Update(rest);
      return;
    }
    for (size_t i = 0; i < args.values_in.size(); i += kChunkElements) {
      UpdateChunk(args, i, std::min(kChunkElements, args.values_in.size() - i));
    }
  }

 private:
  void UpdateChunk(const UpdateArgs& args, size_t first, size_t count) const {
    std::array<float, kChunkElements> corrected;
    const EncodedGradient gradient(args.gradient.format, ElementOf(args.gradient, first),
                                   args.gradient.scale);
    Compensate(compensation_, gradient,
               {args.slots_in.back() + first, args.slots_out.back() + first},
               args.values_in.data() + first, args.worker_values.data() + first,
               absl::MakeSpan(corrected).first(count));

    std::array<const float*, kMaxRuleSlots> slots_in{};
    std::array<float*, kMaxRuleSlots> slots_out{};
    const size_t num_slots = args.slots_in.size() - 1;
    for (size_t s = 0; s < num_slots; ++s) {
      slots_in[s] = args.slots_in[s] + first;
      slots_out[s] = args.slots_out[s] + first;
    }
    UpdateArgs chunk = args;
    chunk.values_in = args.values_in.subspan(first, count);
    chunk.values_out = args.values_out.subspan(first, count);
    chunk.slots_in = {slots_in.data(), num_slots};
    chunk.slots_out = {slots_out.data(), num_slots};
    chunk.gradient = EncodedGradient(corrected.data());
    chunk.worker_values = {};
    rule_->Update(chunk);
  }

  const std::unique_ptr<Optimizer> rule_;
  const DelayCompensationRule compensation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> CompensateDelay(
    std::unique_ptr<Optimizer> rule, const v1::StaleGradientConfig::DelayCompensation& config) {
  const DelayCompensationRule compensation = {config.has_lambda() ? config.lambda() : 2.0f,
                                              config.has_decay() ? config.decay() : 0.95f,
                                              config.has_epsilon() ? config.epsilon() : 1e-7f};
  constexpr char kField[] = "consistency.stale_gradients.delay_compensation";
  RETURN_IF_ERROR(ExpectNotNegative(absl::StrCat(kField, ".lambda"), compensation.lambda));
  RETURN_IF_ERROR(ExpectBelowOne(absl::StrCat(kField, ".decay"), compensation.decay));
  RETURN_IF_ERROR(ExpectPositive(absl::StrCat(kField, ".epsilon"), compensation.epsilon));
  return std::make_unique<DelayCompensatedOptimizer>(std::move(rule), compensation);
}

}  // namespace keelson
