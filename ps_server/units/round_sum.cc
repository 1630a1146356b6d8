#include "ps_server/units/round_sum.h"

#include "absl/strings/str_cat.h"
#include "core/optim/accumulate.h"

namespace keelson {

std::string RoundId::ToString() const {
  return absl::StrCat("round ", round, ", attempt ", attempt);
}

void RoundSum::Add(const WireGradient& gradient, float weight) {
  ReadGradient(gradient, sum_.size(),
               [&](int64_t first, int64_t count, const EncodedGradient& piece) {
                 AddWeighted(piece, weight, absl::MakeSpan(sum_.data() + first, count));
               });
  weights_ += weight;
  ++contributions_;
}

EncodedGradient RoundSum::TakeMean() {
  DivideBy(static_cast<float>(weights_), sum_.span());
  return EncodedGradient(sum_.data());
}

}  // namespace keelson
