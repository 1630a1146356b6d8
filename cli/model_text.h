// A model as text: a table of its layers, or a picture for Graphviz.
#ifndef KEELSON_CLI_MODEL_TEXT_H_
#define KEELSON_CLI_MODEL_TEXT_H_

#include <string>

#include "core/model/spec/model_spec.h"

namespace keelson {

// A row for each layer, in the order of computation: name, kind, inputs, the shape of its output,
// its parameters (shared ones with the first layer that has them) and operations. Below it the
// embedding tables with their layers, the sums, and the loss.
std::string ModelTable(const ModelSpec& model);

// The graph in Graphviz's language: `dot -Tsvg`.
std::string ModelDot(const ModelSpec& model);

}  // namespace keelson

#endif  // KEELSON_CLI_MODEL_TEXT_H_
