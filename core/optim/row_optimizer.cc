#include "core/optim/row_optimizer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <variant>

#include "core/base/status_macros.h"
#include "core/optim/catch_up.h"
#include "core/optim/row_update.h"
#include "core/optim/rule_config.h"
#include "core/optim/rules.h"
#include "core/tensor/table_spec.h"

namespace keelson {
namespace {

// So many rows have their factors beside each other on the stack.
constexpr size_t kChunk = 128;

std::vector<RowSlotSpec> SlotsOf(const Rule& rule, size_t dim) {
  const std::vector<SlotSpec> specs = std::visit([](const auto& r) { return r.Slots(); }, rule);
  const bool by_row = std::holds_alternative<RowWiseAdagradRule>(rule);
  std::vector<RowSlotSpec> slots;
  for (const SlotSpec& spec : specs) {
    slots.push_back({spec.name, by_row ? 1 : dim, spec.initial_value});
  }
  return slots;
}

size_t FloatsOf(size_t dim, const std::vector<RowSlotSpec>& slots) {
  size_t floats = dim;
  for (const RowSlotSpec& slot : slots) floats += slot.floats;
  return floats;
}

// The missed steps of one call: its rate and step hold for all rows.
class MissedSteps {
 public:
  // `series` is Adam's if its moments are made up for.
  MissedSteps(const AdamSeries* series, double rate, double weight_decay, int64_t step)
      : series_(series),
        rate_(rate),
        step_(step),
        all_behind_(series == nullptr ? 0 : series->All(step)),
        decay_(rate * weight_decay),
        keep_(1 - decay_) {}

  RowCatchUp Of(uint32_t missed) const {
    RowCatchUp row;
    row.any = missed > 0;
    if (missed == 0) return row;
    row.keep = static_cast<float>(keep_(missed));
    if (series_ == nullptr) return row;
    const int64_t last = std::max<int64_t>(0, step_ - int64_t{missed});
    double movement = rate_ * series_->Movement(last, missed, all_behind_);
    // keep_ is of all steps; a movement decays only in those behind it.
    if (decay_ > 0) movement *= 1 + decay_ * series_->MeanStep(missed);
    row.movement = static_cast<float>(movement);
    row.m = series_->FactorOfM(missed);
    row.v = series_->FactorOfV(missed);
    return row;
  }

 private:
  const AdamSeries* const series_;
  const double rate_;
  const int64_t step_;
  const double all_behind_;  // AdamSeries::All of the step
  const double decay_;       // in one step
  const PowerTable keep_;
};

class RuleRowOptimizer : public RowOptimizer {
 public:
  RuleRowOptimizer(const Rule& rule, const CommonSettings& common, size_t dim)
      : RowOptimizer(dim, SlotsOf(rule, dim)), rule_(rule), common_(common) {
    const auto* const adam = std::get_if<AdamRule>(&rule_);
    if (adam == nullptr) return;
    epsilon_ = adam->epsilon;
    correction_.emplace(*adam);
    if (common.exact) series_.emplace(*adam);
  }

  void Update(const RowBatch& batch) const override;
  void Read(const RowReadBatch& batch) const override;

  bool counts_updates() const override { return correction_.has_value() && !series_.has_value(); }
  bool catches_up() const override { return series_.has_value() || common_.exact_weight_decay; }

 private:
  float RateOf(float learning_rate) const {
    return static_cast<float>(learning_rate * common_.rate_factor);
  }
  RowStep StepAt(float rate, int64_t step) const;
  MissedSteps MissedAt(float learning_rate, int64_t step) const {
    return MissedSteps(series_.has_value() ? &*series_ : nullptr, RateOf(learning_rate),
                       common_.exact_weight_decay ? common_.weight_decay : 0, step);
  }
  RowCatchUps CatchUps(absl::Span<const RowCatchUp> rows) const {
    return {rows, series_.has_value(), epsilon_};
  }

  const Rule rule_;
  const CommonSettings common_;
  float epsilon_ = 0;                         // Adam's
  std::optional<BiasCorrection> correction_;  // Adam's
  std::optional<AdamSeries> series_;          // exact Adam's
};

RowStep RuleRowOptimizer::StepAt(float rate, int64_t step) const {
  return std::visit([&](const auto& rule) -> RowStep { return rule.At(rate, step); }, rule_);
}

void RuleRowOptimizer::Update(const RowBatch& batch) const {
  assert(batch.gradients.format != WireFormat::kTopK);
  assert(!counts_updates() || batch.updates.size() == batch.rows.size());
  assert(!catches_up() || batch.missed.size() == batch.rows.size());
  const float rate = RateOf(batch.learning_rate);
  // As FtrlRule says.
  if (std::holds_alternative<FtrlRule>(rule_) && !(rate > 0)) return;
  const auto keep = static_cast<float>(1 - double{rate} * common_.weight_decay);
  RowUpdateArgs args = {dim(), {}, batch.gradients, StepAt(rate, batch.step), {}, {}, {}};
  args.transform = {common_.limit, common_.l2, keep};
  const std::optional<MissedSteps> missed =
      catches_up() ? std::make_optional(MissedAt(batch.missed_learning_rate, batch.step))
                   : std::nullopt;
  std::array<float, kChunk> rates;
  std::array<RowCatchUp, kChunk> catch_ups;
  for (size_t begin = 0; begin < batch.rows.size(); begin += kChunk) {
    const size_t count = std::min(kChunk, batch.rows.size() - begin);
    args.rows = batch.rows.subspan(begin, count);
    args.gradients.data = batch.gradients.data + begin * batch.gradients.stride;
    if (counts_updates()) {
      for (size_t i = 0; i < count; ++i) {
        rates[i] = static_cast<float>(rate * correction_->At(batch.updates[begin + i] + 1));
      }
      args.rates = absl::MakeConstSpan(rates.data(), count);
    }
    if (missed.has_value()) {
      for (size_t i = 0; i < count; ++i) catch_ups[i] = missed->Of(batch.missed[begin + i]);
      args.catch_ups = CatchUps(absl::MakeConstSpan(catch_ups.data(), count));
    }
    UpdateRows(args);
  }
}

void RuleRowOptimizer::Read(const RowReadBatch& batch) const {
  assert(!catches_up() || batch.missed.size() == batch.rows.size());
  if (!catches_up()) return ReadRows({dim(), batch.rows, {}, batch.values, batch.stride});
  const MissedSteps missed = MissedAt(batch.learning_rate, batch.step);
  std::array<RowCatchUp, kChunk> catch_ups;
  for (size_t begin = 0; begin < batch.rows.size(); begin += kChunk) {
    const size_t count = std::min(kChunk, batch.rows.size() - begin);
    for (size_t i = 0; i < count; ++i) catch_ups[i] = missed.Of(batch.missed[begin + i]);
    ReadRows({dim(), batch.rows.subspan(begin, count),
              CatchUps(absl::MakeConstSpan(catch_ups.data(), count)),
              batch.values + begin * batch.stride, batch.stride});
  }
}

class FrozenRows : public RowOptimizer {
 public:
  explicit FrozenRows(size_t dim) : RowOptimizer(dim, {}) {}

  void Update(const RowBatch&) const override {}
  void Read(const RowReadBatch& batch) const override {
    ReadRows({dim(), batch.rows, {}, batch.values, batch.stride});
  }
};

}  // namespace

RowOptimizer::RowOptimizer(size_t dim, std::vector<RowSlotSpec> slots)
    : dim_(dim), slots_(std::move(slots)), row_floats_(FloatsOf(dim, slots_)) {
  assert(dim >= 1 && dim <= TableSpec::kMostDim);
}

absl::StatusOr<std::unique_ptr<RowOptimizer>> CreateRowOptimizer(
    const v1::OptimizerConfig& config, const OptimizerAdjustment& adjustment, size_t dim) {
  ASSIGN_OR_RETURN(const ConfiguredRule configured, RuleFromConfig(config, adjustment));
  return std::make_unique<RuleRowOptimizer>(configured.rule, configured.common, dim);
}

std::unique_ptr<RowOptimizer> CreateFrozenRows(size_t dim) {
  return std::make_unique<FrozenRows>(dim);
}

}  // namespace keelson
