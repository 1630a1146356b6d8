#include "worker/gradient_histograms.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/summary/event_handover.h"
#include "worker/gradient_decoding.h"

namespace keelson {

GradientHistograms::GradientHistograms(Options options, std::vector<VariableSpec> variables,
                                       const Clock* clock, FileSystem* file_system)
    : options_(std::move(options)),
      variables_(std::move(variables)),
      clock_(clock),
      file_system_(file_system) {}

void GradientHistograms::UseWireMemory(std::vector<WireLayout> layouts,
                                       std::vector<std::vector<absl::Span<uint8_t>>> gradients) {
  layouts_ = std::move(layouts);
  encoded_ = std::move(gradients);
}

void GradientHistograms::BeginStep() {
  wanted_ = steps_++ % options_.every == 0;
  histograms_.clear();
}

void GradientHistograms::Add(size_t variable, absl::Span<const float> gradient) {
  const VariableSpec& spec = variables_[variable];
  if (!spec.trained()) return;
  histograms_.emplace_back(absl::StrCat("gradients/", spec.name), Histogram());
  histograms_.back().second.Add(gradient);
}

void GradientHistograms::AddEncoded(size_t variable, size_t set) {
  DecodeGradient(layouts_[variable], encoded_[set][variable].data(), &decoded_);
  Add(variable, decoded_);
}

void GradientHistograms::EndStep(int64_t step) {
  if (!wanted_) return;
  wanted_ = false;
  const absl::Status status = Write(step);
  if (!status.ok() && !failing_) {
    LogWarning("no histograms of gradients until this works: ", status.message());
  }
  failing_ = !status.ok();
}

absl::Status GradientHistograms::Write(int64_t step) {
  int64_t non_finite = 0;
  for (const auto& [tag, histogram] : histograms_) non_finite += histogram.non_finite();
  v1::Event event = HistogramEvent(step, histograms_);
  event.set_wall_time(static_cast<double>(absl::ToUnixMicros(clock_->Now())) / 1e6);
  v1::Summary::Value* const count = event.mutable_summary()->add_value();
  count->set_tag("gradients/non_finite");
  count->set_simple_value(static_cast<float>(non_finite));
  return HandOverEvent(event, options_.directory, file_system_);
}

}  // namespace keelson
