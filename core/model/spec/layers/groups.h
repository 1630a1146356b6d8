// The rules of each kind of layer, in a source per group of kinds.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYERS_GROUPS_H_
#define KEELSON_CORE_MODEL_SPEC_LAYERS_GROUPS_H_

#include "core/model/spec/layers/layer_rules.h"

namespace keelson {

// kernels.cc
LayerRules DenseRules();
LayerRules Conv2DRules();
LayerRules CrossRules();

// pools.cc
LayerRules MaxPoolRules();
LayerRules AvgPoolRules();
LayerRules GlobalAveragePoolRules();

// elementwise.cc
LayerRules ActivationRules();
LayerRules GateRules();
LayerRules SoftmaxRules();
LayerRules DropoutRules();
LayerRules ScaleRules();
LayerRules AddRules();
LayerRules MultiplyRules();

// normalization.cc
LayerRules BatchNormRules();
LayerRules LayerNormRules();

// shapes.cc
LayerRules FlattenRules();
LayerRules ReshapeRules();
LayerRules TransposeRules();

// embeddings.cc
LayerRules EmbeddingRules();
LayerRules EmbeddingBagRules();

// interactions.cc
LayerRules DotRules();
LayerRules CosineRules();
LayerRules FactorizationMachineRules();
LayerRules DotInteractionRules();

// columns.cc
LayerRules ConcatRules();
LayerRules SliceRules();

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYERS_GROUPS_H_
