#include "core/model/spec/layer_spec.h"

#include "core/model/spec/layers/layer_rules.h"

namespace keelson {

std::vector<size_t> LayerSpec::variables() const {
  std::vector<size_t> positions;
  for (const std::optional<size_t>& position :
       {down_kernel, kernel, embeddings, bias, gamma, beta, moving_mean, moving_variance}) {
    if (position) positions.push_back(*position);
  }
  return positions;
}

int64_t LayerSpec::operations() const {
  const auto operations_of = RulesOf(kind).operations;
  return operations_of == nullptr ? 0 : operations_of(*this);
}

}  // namespace keelson
