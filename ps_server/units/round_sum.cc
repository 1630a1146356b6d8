#include "ps_server/units/round_sum.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/optim/accumulate.h"
#include "core/wire/byte_rope.h"

namespace keelson {

std::string RoundId::ToString() const {
  return absl::StrCat("round ", round, ", attempt ", attempt);
}

void RoundSum::Add(const WireGradient& gradient, float weight, uint32_t order) {
  weights_ += weight;
  ++contributions_;
  if (order > next_order_ && !kept_.contains(order)) return Keep(gradient, weight, order);
  AddNow(gradient, weight);
  if (order == next_order_) ++next_order_;
  while (!kept_.empty() && kept_.begin()->first == next_order_) AddFirstKept();
}

void RoundSum::AddNow(const WireGradient& gradient, float weight) {
  const auto add = begun_ ? AddWeighted : BeginWeighted;
  begun_ = true;
  ReadGradient(gradient, sum_.size(),
               [&](int64_t first, int64_t count, const EncodedGradient& piece) {
                 add(piece, weight, absl::MakeSpan(sum_.data() + first, count));
               });
}

void RoundSum::Keep(const WireGradient& gradient, float weight, uint32_t order) {
  ByteCursor bytes = *gradient.cursor;
  SkipGradient(gradient, sum_.size());
  Kept kept = {std::string(bytes.remaining() - gradient.cursor->remaining(), '\0'), gradient.format,
               weight};
  bytes.Read(kept.bytes.data(), kept.bytes.size());
  kept_.emplace(order, std::move(kept));
}

void RoundSum::AddFirstKept() {
  const auto [order, kept] = std::move(*kept_.begin());
  kept_.erase(kept_.begin());
  ByteRope rope;
  rope.AppendBorrowed(kept.bytes.data(), kept.bytes.size());
  ByteCursor cursor(rope);
  AddNow({kept.format, &cursor}, kept.weight);
  next_order_ = order + 1;
}

void RoundSum::AddKept() {
  while (!kept_.empty()) AddFirstKept();
}

EncodedGradient RoundSum::TakeMean() {
  AddKept();
  DivideBy(static_cast<float>(weights_), sum_.span());
  return EncodedGradient(sum_.data());
}

}  // namespace keelson
