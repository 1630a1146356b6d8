#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Embedding : public Layer {
 public:
  Embedding(const LayerSpec& spec, Parameter embeddings)
      : Layer(spec), dim_(spec.output.num_elements()), embeddings_(embeddings) {}

  void Forward(Device* device, const Pass& pass, Inputs /*x*/, DeviceMemory* y) const override {
    device->MultiplySparse(pass.ids->by_example, dim_, *embeddings_.value, 0, y);
  }

  void Backward(Device* device, const Pass& pass, Inputs /*x*/, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients /*dx*/) const override {
    if (!embeddings_.adds) {
      device->Fill(0, embeddings_.gradient->size(), embeddings_.gradient);
    }
    device->MultiplySparse(pass.ids->by_id, dim_, *dy, embeddings_.adds ? 1.0f : 0.0f,
                           embeddings_.gradient);
  }

 private:
  const int64_t dim_;
  const Parameter embeddings_;
};

}  // namespace

std::unique_ptr<Layer> MakeEmbedding(const LayerSpec& spec, Parameter embeddings) {
  return std::make_unique<Embedding>(spec, embeddings);
}

}  // namespace keelson
