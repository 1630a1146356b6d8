// The nodes of an ONNX graph that look ids up: features, and the layers embedding and
// embedding_bag.
#ifndef KEELSON_CORE_ONNX_LOOKUP_NODES_H_
#define KEELSON_CORE_ONNX_LOOKUP_NODES_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"
#include "core/model/spec/layer_spec.h"
#include "core/model/spec/record_schema.h"
#include "core/onnx/graph_builder.h"
#include "core/onnx/layer_nodes.h"
#include "core/onnx/values.h"

namespace keelson {

// Adds the inputs of a feature: "<name>"; of a bag "<name>", its ids, "<name>_offsets" and, with
// weights, "<name>_weights", as FeatureValues has them. Ids of 64 bits are int64 of the same bits.
OnnxFeature AddFeature(const FeatureSpec& feature, OnnxGraphBuilder* graph);

// Adds a table's rows, and finds those of the `features`, positions of the model's, that layers
// look up in it.
OnnxTableNames AddTable(const std::string& name, const OnnxTable& table,
                        absl::Span<const size_t> features, const OnnxNames& names,
                        OnnxGraphBuilder* graph);

// Returns the output of an embedding or embedding_bag: [n, dim].
std::string AddLookup(const LayerSpec& layer, const OnnxNames& names, OnnxGraphBuilder* graph);

}  // namespace keelson

#endif  // KEELSON_CORE_ONNX_LOOKUP_NODES_H_
