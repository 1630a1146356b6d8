#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/spec/layer_relations.h"
#include "core/model/spec/model_config_testing.h"
#include "core/model/spec/model_spec.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;

constexpr char kFeatureList[] = R"pb(
  features {
    name: "user"
    id {}
  }
  features {
    name: "seen"
    bag {}
  }
)pb";
constexpr char kTables[] = R"pb(
  tables { name: "people" dim: 3 }
  tables { name: "things" dim: 3 }
)pb";
constexpr char kRest[] = R"pb(
  layers {
    name: "both"
    multiply {}
    inputs: "u"
    inputs: "s"
  }
  layers { dense { units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY }
)pb";

std::string LayersOf(const std::string& user, const std::string& seen) {
  return absl::StrCat("layers { name: 'u' inputs: 'user' ", user,
                      " } layers { name: 's' inputs: 'seen' ", seen, " }");
}

absl::StatusOr<ModelSpec> Infer(const std::string& tables, const std::string& layers) {
  return InferModelSpec(ParseModel(absl::StrCat(kFeatureList, tables, layers, kRest)));
}

ModelSpec Good() {
  const auto spec = Infer(kTables, LayersOf("embedding { table: 'people' }",
                                            "embedding_bag { table: 'things' combiner: SUM }"));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ModelSpec());
}

TEST(TableLayersTest, ALayerHasTheRowsOfItsTableAndNoVariables) {
  const ModelSpec spec = Good();
  ASSERT_EQ(spec.tables.size(), 2u);
  EXPECT_EQ(spec.tables[0].name, "people");
  EXPECT_EQ(spec.tables[1].dim, 3);
  EXPECT_EQ(spec.tables[0].initializer.kind, Initializer::Kind::kUniform);
  EXPECT_EQ(spec.tables[0].initializer.b, 0.05f);
  ASSERT_EQ(spec.variables.size(), 2u) << "the dense layer's";
  EXPECT_EQ(spec.layers[0].table, 0u);
  EXPECT_EQ(spec.layers[1].table, 1u);
  EXPECT_EQ(spec.layers[1].combiner, Combiner::kSum);
  EXPECT_THAT(spec.layers[0].variables(), IsEmpty());
  EXPECT_EQ(spec.layers[0].output, Shape({3}));
  EXPECT_EQ(spec.parameters_of(spec.layers[0]), 0);
  EXPECT_EQ(OwnerOfVariables(spec, 1), nullptr);
  EXPECT_EQ(spec.records.features[0].num_ids, 0);
  EXPECT_EQ(spec.records.FeaturesText(), "user (any id), seen (bag of any ids)");
}

TEST(TableLayersTest, LayersShareATableAndAFeatureGoesToSeveral) {
  const auto spec = InferModelSpec(ParseModel(absl::StrCat(kFeatureList, R"pb(
    tables { name: "all" dim: 3 }
    tables { name: "bias" dim: 3 }
    layers {
      name: "u"
      inputs: "user"
      embedding { table: "all" }
    }
    layers {
      name: "s"
      inputs: "seen"
      embedding_bag { table: "all" }
    }
    layers {
      name: "w"
      inputs: "user"
      embedding { table: "bias" }
    }
    layers {
      name: "dense"
      inputs: "user"
      embedding { rows: 9 dim: 3 }
    }
    layers {
      name: "sum"
      add {}
      inputs: "u"
      inputs: "s"
      inputs: "w"
      inputs: "dense"
    }
    layers { dense { units: 1 } }
    loss { kind: SIGMOID_CROSS_ENTROPY })pb")));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->records.features[0].num_ids, 9) << "the variable has no more rows";
  EXPECT_EQ(spec->records.features[1].num_ids, 0);
}

TEST(TableLayersTest, TablesAloneAreSomethingToTrain) {
  const auto spec = InferModelSpec(ParseModel(R"pb(
    features {
      name: "words"
      bag {}
    }
    tables { name: "weights" dim: 1 }
    layers { embedding_bag { table: "weights" combiner: SUM } }
    loss { kind: SIGMOID_CROSS_ENTROPY })pb"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->variables, IsEmpty());
}

TEST(TableLayersTest, RefusesWhatMakesNoSense) {
  const struct {
    std::string tables;
    std::string user;
    std::string seen;
    std::string error;
  } all[] = {
      {"tables { name: 'a/b' dim: 3 }", "", "",
       "model.tables[0].name: expected letters, digits, '.', '_' or '-', the first of them a "
       "letter, a digit or '.', found \"a/b\""},
      {"tables { name: 'a' dim: 3 } tables { name: 'a' dim: 3 }", "", "",
       "model.tables[1].name: another table is already called \"a\""},
      {"tables { name: 'a' }", "", "", "model.tables[0].dim: expected 1 to 1024, found 0"},
      {"tables { name: 'a' dim: 1025 }", "", "",
       "model.tables[0].dim: expected 1 to 1024, found 1025"},
      {"tables { name: 'a' dim: 2 max_rows: -1 }", "", "",
       "model.tables[0].max_rows: expected at least 0, found -1"},
      {"tables { name: 'a' dim: 2 at_limit: EVICT }", "", "",
       "model.tables[0].at_limit: expected REFUSE without max_rows, found EVICT: there is no "
       "limit"},
      {"tables { name: 'a' dim: 2 expire_after_steps: -1 }", "", "",
       "model.tables[0].expire_after_steps: expected 0 to 2147483647, found -1"},
      {"tables { name: 'a' dim: 2 expire_after_steps: 2147483648 }", "", "",
       "model.tables[0].expire_after_steps: expected 0 to 2147483647, found 2147483648"},
      {"tables { name: 'a' dim: 2 admit_after: 65536 }", "", "",
       "model.tables[0].admit_after: expected 0 to 65535, found 65536"},
      {kTables, "embedding { table: 'people' }", "embedding_bag { table: 'people' }",
       "model.tables[1]: expected an embedding or embedding_bag layer that names \"things\", found "
       "none"},
      {kTables, "embedding { table: 'other' }", "embedding_bag { table: 'people' }",
       "model.layers[0].embedding.table: expected the name of one of model.tables, found "
       "\"other\""},
      {kTables, "embedding { table: 'people' rows: 3 }", "embedding_bag { table: 'things' }",
       "model.layers[0].embedding.table: expected neither rows nor dim beside it, found rows 3, "
       "dim 0"},
      {kTables, "embedding { table: 'people' }",
       "embedding_bag { table: 'things' } variables_of: 'u'",
       "model.layers[1].embedding_bag.table: expected no variables_of beside it, for layers share "
       "a table by its name, found \"u\""},
      {kTables, "embedding { table: 'people' }",
       "embedding_bag { rows: 5 dim: 3 } variables_of: 'u'",
       "model.layers[1].embedding_bag: expected the table \"people\" in place of variables_of "
       "\"u\", which has no variables, found none"},
      {kTables, "embedding {}", "embedding_bag { table: 'things' }",
       "model.layers[0].embedding.rows: expected > 0, found 0"},
  };
  for (const auto& bad : all) {
    const absl::Status status = Infer(bad.tables, LayersOf(bad.user, bad.seen)).status();
    EXPECT_EQ(status, absl::InvalidArgumentError(bad.error));
  }
}

}  // namespace
}  // namespace keelson
