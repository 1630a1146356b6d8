// One step of a model's forward and backward pass.
#ifndef KEELSON_CORE_MODEL_LAYER_H_
#define KEELSON_CORE_MODEL_LAYER_H_

#include <cstdint>
#include <memory>

#include "core/device/device.h"
#include "core/model/model_spec.h"

namespace keelson {

// What all layers are told about a pass.
struct Pass {
  int64_t batch = 0;  // examples
  bool training = false;
  uint64_t dropout_seed = 0;
};

// A variable of a layer on the device. Both are null where the layer has none.
struct Parameter {
  const DeviceMemory* value = nullptr;
  DeviceMemory* gradient = nullptr;
};

// Keeps no state between calls: the caller keeps inputs and outputs from the forward to the
// backward pass.
class Layer {
 public:
  virtual ~Layer() = default;

  const LayerSpec& spec() const { return spec_; }
  bool has_variables() const { return spec_.kernel >= 0; }

  virtual void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
                       DeviceMemory* y) const = 0;
  // From the output's gradient `dy` computes the variables' gradients, and the input's gradient
  // unless `dx` is null.
  virtual void Backward(Device* device, const Pass& pass, const DeviceMemory& x,
                        const DeviceMemory& y, const DeviceMemory& dy, DeviceMemory* dx) const = 0;

 protected:
  explicit Layer(LayerSpec spec) : spec_(std::move(spec)) {}

 private:
  const LayerSpec spec_;
};

// The layer that `spec` describes; `index` is its position in the model, which keeps two dropout
// layers apart. Null for flatten, which computes nothing.
std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, int index, Parameter kernel,
                                 Parameter bias);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_LAYER_H_
