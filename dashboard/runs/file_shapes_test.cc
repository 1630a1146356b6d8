#include "dashboard/runs/file_shapes.h"

#include <gtest/gtest.h>

namespace keelson {
namespace {

Json Parsed(const char* text) { return ParseJson(text).value_or(Json()); }

const Json& GoodPlacement() {
  static const Json* const placement = new Json(Parsed(
      R"({"balance": null, "shards": [{"task": "ps-0", "bytes": 24}], "later": {},
          "variables": [{"name": "a", "shape": [2, 2], "bytes": 16,
                         "partitions": [{"shard": 0, "row_begin": 0, "row_end": 2, "bytes": 16}]},
                        {"name": "step", "shape": [], "bytes": 8, "partitions": []}]})"));
  return *placement;
}

const Json& GoodReport() {
  static const Json* const report = new Json(Parsed(
      R"({"step": 7, "time": 1.7e9, "kind": "binary", "examples": 2, "classes": ["no", "yes"],
          "accuracy": 0.5, "confusion": [[1, 0], [1, 0]],
          "per_class": [{"precision": 1, "recall": 0.5, "f1": null, "support": 2}],
          "calibration": [{"from": 0, "to": 1, "count": 2, "confidence": 0.5, "accuracy": 0.5}],
          "calibration_error": 0.1, "calibration_ratio": null, "normalized_entropy": 1.25,
          "calibration_deciles": [{"from": 0.1, "to": 0.2, "count": 2, "confidence": 0.15,
                                   "accuracy": 0.5}],
          "scores": [{"from": -1, "to": 1, "counts": [1, 1]}],
          "group_auc": [{"feature": "user", "auc": 0.75, "mean_auc": null, "groups": 1,
                         "examples": 2, "one_label_groups": 0, "sampled": 1}],
          "retrieval": [{"metrics": ["recall@10"], "items": 5, "queries": 2}],
          "slices": [{"feature": "user", "ids": 1,
                      "values": [{"id": "7", "examples": 2, "share": 0.5, "probability": 0.4,
                                  "loss": 0.7, "normalized_entropy": null}],
                      "frequencies": [{"from": 2, "to": 3, "ids": 1, "examples": 2, "share": 0.5,
                                       "probability": 0.4, "loss": 0.7,
                                       "normalized_entropy": 1.1}],
                      "others": {"examples": 1, "share": 0, "probability": 0.1, "loss": 0.2,
                                 "normalized_entropy": null}}],
          "roc": [[0, 0], [1, 1]], "auc": 0.5,
          "precision_recall": [[0, 1]], "auc_pr": null, "pairs": [[1, null]],
          "wrong": [{"record": 1, "label": 0, "predicted": null, "confidence": 0.5,
                     "label_probability": 0.5, "input": {"shape": [2], "values": [0, 255]}},
                    {"record": 2, "features": [
                       {"name": "price", "count": 1, "numbers": [null]},
                       {"name": "user", "count": 1, "ids": ["7"]},
                       {"name": "seen", "count": 40, "ids": ["7"], "weights": [0.5]}],
                     "columns": [{"name": "city", "count": 1, "texts": ["Rome"]}]}]})"));
  return *report;
}

// `json` with another value at `pointer`.
Json With(Json json, const char* pointer, const Json& value) {
  json[Json::json_pointer(pointer)] = value;
  return json;
}

TEST(CheckPlacementShape, TakesTheFormOfTheContract) {
  EXPECT_TRUE(CheckPlacementShape(GoodPlacement()).ok()) << CheckPlacementShape(GoodPlacement());
}

TEST(CheckPlacementShape, NamesTheFieldThatHasAnotherForm) {
  EXPECT_EQ(CheckPlacementShape(With(GoodPlacement(), "/shards", 5)).message(),
            "shards: expected a list of {task, bytes}");
  EXPECT_EQ(CheckPlacementShape(Parsed(R"({"balance": 1, "shards": []})")).message(),
            "variables: expected a list of {name, shape, bytes, partitions}, found none");
  EXPECT_EQ(CheckPlacementShape(Json::array()).message(), "balance: expected a number, found none");
  for (const char* const pointer :
       {"/balance", "/shards/0", "/shards/0/bytes", "/variables", "/variables/0",
        "/variables/0/name", "/variables/0/shape", "/variables/0/shape/1", "/variables/0/bytes",
        "/variables/1/partitions", "/variables/0/partitions/0",
        "/variables/0/partitions/0/row_begin"}) {
    const absl::Status status = CheckPlacementShape(With(GoodPlacement(), pointer, true));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << pointer;
  }
}

TEST(CheckReportShape, TakesTheFormOfTheContract) {
  EXPECT_TRUE(CheckReportShape(GoodReport()).ok()) << CheckReportShape(GoodReport());
  EXPECT_TRUE(CheckReportShape(Parsed(R"({"kind": "regression", "wrong": []})")).ok());
  EXPECT_TRUE(CheckReportShape(Parsed(R"({"kind": "retrieval", "wrong": []})")).ok());
}

TEST(CheckReportShape, NamesTheFieldThatHasAnotherForm) {
  EXPECT_EQ(CheckReportShape(Json::object()).message(),
            "kind: expected classification, binary, regression or retrieval, found none");
  EXPECT_EQ(CheckReportShape(With(GoodReport(), "/confusion", Json({{1, 2}}))).message(),
            "confusion: expected a square of numbers");
  for (const char* const pointer : {"/time",
                                    "/kind",
                                    "/examples",
                                    "/classes",
                                    "/classes/0",
                                    "/accuracy",
                                    "/confusion",
                                    "/confusion/0",
                                    "/confusion/0/0",
                                    "/per_class",
                                    "/per_class/0",
                                    "/per_class/0/f1",
                                    "/calibration/0/from",
                                    "/calibration_error",
                                    "/calibration_ratio",
                                    "/calibration_deciles/0/to",
                                    "/normalized_entropy",
                                    "/scores/0/from",
                                    "/scores/0/counts",
                                    "/scores/0/counts/1",
                                    "/group_auc/0/feature",
                                    "/group_auc/0/sampled",
                                    "/retrieval",
                                    "/retrieval/0/metrics/0",
                                    "/retrieval/0/items",
                                    "/retrieval/0/queries",
                                    "/slices/0/feature",
                                    "/slices/0/ids",
                                    "/slices/0/values/0/id",
                                    "/slices/0/values/0/loss",
                                    "/slices/0/frequencies/0/from",
                                    "/slices/0/frequencies/0/share",
                                    "/slices/0/others/examples",
                                    "/roc",
                                    "/roc/0",
                                    "/roc/0/1",
                                    "/auc",
                                    "/precision_recall",
                                    "/auc_pr",
                                    "/pairs/0",
                                    "/wrong",
                                    "/wrong/0",
                                    "/wrong/0/label",
                                    "/wrong/0/input",
                                    "/wrong/0/input/shape",
                                    "/wrong/0/input/values/0",
                                    "/wrong/1/features",
                                    "/wrong/1/features/0",
                                    "/wrong/1/features/0/name",
                                    "/wrong/1/features/0/count",
                                    "/wrong/1/features/0/numbers/0",
                                    "/wrong/1/features/1/ids",
                                    "/wrong/1/features/1/ids/0",
                                    "/wrong/1/features/2/weights",
                                    "/wrong/1/columns",
                                    "/wrong/1/columns/0",
                                    "/wrong/1/columns/0/name",
                                    "/wrong/1/columns/0/count",
                                    "/wrong/1/columns/0/texts",
                                    "/wrong/1/columns/0/texts/0",
                                    "/wrong/1/features/2/weights/0",
                                    "/wrong/1/features/2/weights/1"}) {
    const absl::Status status = CheckReportShape(With(GoodReport(), pointer, true));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << pointer;
  }
}

}  // namespace
}  // namespace keelson
