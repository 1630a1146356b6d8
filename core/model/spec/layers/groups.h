// The rules of each kind of layer, in a source per group of kinds.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYERS_GROUPS_H_
#define KEELSON_CORE_MODEL_SPEC_LAYERS_GROUPS_H_

#include "core/model/spec/layers/layer_rules.h"

namespace keelson {

// kernels.cc
LayerRules DenseRules();
LayerRules Conv2DRules();

// pools.cc
LayerRules MaxPoolRules();
LayerRules AvgPoolRules();

// elementwise.cc
LayerRules ActivationRules();
LayerRules DropoutRules();
LayerRules ScaleRules();
LayerRules AddRules();
LayerRules MultiplyRules();

// normalization.cc
LayerRules BatchNormRules();

// columns.cc
LayerRules FlattenRules();
LayerRules ConcatRules();
LayerRules SliceRules();

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYERS_GROUPS_H_
