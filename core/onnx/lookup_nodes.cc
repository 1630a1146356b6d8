#include "core/onnx/lookup_nodes.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

using Attribute = OnnxAttribute;

// The weights of a bag, [n, ids]: record i has the ids from offsets[i] to below offsets[i + 1].
std::string BagWeights(const std::string& name, const std::string& ids, const std::string& offsets,
                       const std::string& weights, OnnxGraphBuilder* graph) {
  const std::string first = graph->Ints(name + "/first", {0});
  const std::string second = graph->Ints(name + "/second", {1});
  const std::string last = graph->Ints(name + "/last", {-1});
  const std::string end = graph->Ints(name + "/end", {INT64_MAX});
  const auto column = [&](const std::string& from, const std::string& to) {
    return graph->Add("Unsqueeze", {graph->Add("Slice", {offsets, from, to}, name), second}, name);
  };
  const std::string number =
      graph->Add("Unsqueeze",
                 {graph->Add("Range",
                             {graph->Int(name + "/zero", 0),
                              graph->Add("Squeeze", {graph->Add("Shape", {ids}, name)}, name),
                              graph->Int(name + "/one", 1)},
                             name),
                  first},
                 name);
  const std::string inside =
      graph->Add("And",
                 {graph->Add("GreaterOrEqual", {number, column(first, last)}, name),
                  graph->Add("Less", {number, column(second, end)}, name)},
                 name);
  const std::string ones =
      graph->Add("Cast", {inside}, name, {Attribute::Int("to", onnx::Tensor::FLOAT)});
  if (weights.empty()) return ones;
  return graph->Add("Mul", {ones, graph->Add("Unsqueeze", {weights, first}, name)}, name);
}

// Of each of the ids the number of its row, which is the last one's where it has none.
std::string Positions(const std::string& name, const std::string& ids, const OnnxTable& table,
                      OnnxGraphBuilder* graph) {
  // Without rows every id has the last one, number 0.
  if (table.ids.empty()) return graph->Add("Sub", {ids, ids}, name);
  std::vector<int64_t> keys, rows;
  for (const uint64_t id : table.ids) {
    rows.push_back(static_cast<int64_t>(keys.size()));
    keys.push_back(static_cast<int64_t>(id));
  }
  const auto others = static_cast<int64_t>(rows.size());
  return graph->Add("LabelEncoder", {ids}, name,
                    {Attribute::Ints("keys_int64s", keys), Attribute::Ints("values_int64s", rows),
                     Attribute::Int("default_int64", others)},
                    "ai.onnx.ml");
}

// The sum of weighted rows divided by what the combiner says, zeros where that is 0.
std::string Combined(const LayerSpec& layer, const std::string& weights, const std::string& rows,
                     OnnxGraphBuilder* graph) {
  const std::string sum = graph->Add("MatMul", {weights, rows}, layer.name);
  if (layer.combiner == Combiner::kSum) return sum;
  const std::string axes = graph->Ints(layer.name + "/axes", {1});
  std::string divisor;
  if (layer.combiner == Combiner::kMean) {
    divisor = graph->Add("ReduceSum", {weights, axes}, layer.name);
  } else {
    const std::string squares = graph->Add("Mul", {weights, weights}, layer.name);
    divisor =
        graph->Add("Sqrt", {graph->Add("ReduceSum", {squares, axes}, layer.name)}, layer.name);
  }
  const std::string zero = graph->Float(layer.name + "/zero", 0);
  const std::string one = graph->Float(layer.name + "/one", 1);
  const std::string none = graph->Add("Equal", {divisor, zero}, layer.name);
  const std::string safe = graph->Add("Where", {none, one, divisor}, layer.name);
  const std::string quotient = graph->Add("Div", {sum, safe}, layer.name);
  return graph->Add("Where", {none, zero, quotient}, layer.name);
}

}  // namespace

OnnxFeature AddFeature(const FeatureSpec& feature, OnnxGraphBuilder* graph) {
  const std::string& name = feature.name;
  OnnxFeature result;
  if (feature.kind == FeatureKind::kNumbers) {
    std::vector<OnnxGraphBuilder::Dimension> dims = {{.name = "records"}};
    for (const int64_t dim : feature.shape.dims()) dims.push_back({.size = dim});
    result.numbers = graph->AddInput(name, onnx::Tensor::FLOAT, dims, "Numbers of each record");
    return result;
  }
  if (feature.kind == FeatureKind::kId) {
    result.ids =
        graph->AddInput(name, onnx::Tensor::INT64, {{.name = "records"}}, "The id of each record");
    return result;
  }
  const std::string ids = absl::StrCat(name, "_ids");
  result.ids = graph->AddInput(name, onnx::Tensor::INT64, {{.name = ids}},
                               "The ids of all records, one record's after the other's");
  const std::string offsets = graph->AddInput(absl::StrCat(name, "_offsets"), onnx::Tensor::INT64,
                                              {{.name = "records_and_one"}},
                                              "Where each record's ids begin, and their number");
  std::string weights;
  if (feature.weighted) {
    weights = graph->AddInput(absl::StrCat(name, "_weights"), onnx::Tensor::FLOAT, {{.name = ids}},
                              "The weight of each id");
  }
  result.weights = BagWeights(absl::StrCat(name, "/bag"), result.ids, offsets, weights, graph);
  return result;
}

OnnxTableNames AddTable(const std::string& name, const OnnxTable& table,
                        absl::Span<const size_t> features, const OnnxNames& names,
                        OnnxGraphBuilder* graph) {
  OnnxTableNames result;
  std::vector<float> matrix = table.rows;
  matrix.insert(matrix.end(), table.absent.begin(), table.absent.end());
  result.matrix = graph->Floats(
      name, {static_cast<int64_t>(table.ids.size()) + 1, static_cast<int64_t>(table.absent.size())},
      matrix);
  // The table of ids, which may be long, is there once: all features' ids are found together.
  std::vector<std::string> ids;
  for (const size_t feature : features) ids.push_back(names.features[feature].ids);
  const std::string found = Positions(
      name + "/positions", graph->Add("Concat", ids, name + "/ids", {Attribute::Int("axis", 0)}),
      table, graph);
  result.positions.resize(names.features.size());
  std::string begin = graph->Ints(name + "/begin", {0});
  for (size_t k = 0; k < features.size(); ++k) {
    const std::string size = graph->Add("Shape", {ids[k]}, name + "/size");
    const std::string end = graph->Add("Add", {begin, size}, name + "/end");
    result.positions[features[k]] = graph->Add("Slice", {found, begin, end}, name + "/part");
    begin = end;
  }
  return result;
}

std::string AddLookup(const LayerSpec& layer, const OnnxNames& names, OnnxGraphBuilder* graph) {
  const size_t feature = layer.inputs[0];
  const std::string& matrix =
      layer.table ? names.tables[*layer.table].matrix : names.variables[*layer.embeddings];
  const std::string& positions =
      layer.table ? names.tables[*layer.table].positions[feature] : names.features[feature].ids;
  const std::string rows = graph->Add("Gather", {matrix, positions}, layer.name);
  if (layer.kind == LayerKind::kEmbedding) return rows;
  return Combined(layer, names.features[feature].weights, rows, graph);
}

}  // namespace keelson
