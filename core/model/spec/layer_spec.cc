#include "core/model/spec/layer_spec.h"

#include "core/model/spec/layers/layer_rules.h"

namespace keelson {

std::vector<size_t> LayerSpec::variables() const {
  std::vector<size_t> positions;
  for (const std::optional<size_t>& position :
       {kernel, bias, gamma, beta, moving_mean, moving_variance}) {
    if (position) positions.push_back(*position);
  }
  return positions;
}

int64_t LayerSpec::operations() const { return RulesOf(kind).operations(*this); }

}  // namespace keelson
