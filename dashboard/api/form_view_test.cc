#include "dashboard/api/form_view.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::IsEmpty;

constexpr char kForm[] = "/runs/mnist/form";
constexpr char kExamples[] = "eval/examples.json";

class FormViewTest : public DashboardApiTest {
 protected:
  Json Examples() { return Get(kForm)["examples"]; }
};

TEST_F(FormViewTest, AFieldForEachColumn) {
  files().Write("train_config.textproto", ColumnsConfigText());
  EXPECT_EQ(
      Get(kForm),
      Json({{"run", "mnist"},
            {"columns",
             {{{"name", "age"}, {"kind", "number"}, {"list", false}},
              {{"name", "tags"}, {"kind", "text"}, {"list", true}, {"separator", "|"}},
              {{"name", "city"}, {"kind", "text"}, {"list", false}, {"values", {"Oslo", "Rome"}}}}},
            {"examples", Json::array()}}));
}

TEST_F(FormViewTest, ExamplesOfColumns) {
  files().Write("train_config.textproto", ColumnsConfigText());
  files().Write(kExamples, R"({"records": [{"record": 7, "columns": {
      "age": [], "tags": ["a|b"], "city": ["Rome"], "bought": ["1"], "other": []}}]})");
  EXPECT_EQ(Examples(),
            Json::array({{{"record", 7},
                          {"columns", {{"age", nullptr}, {"tags", "a|b"}, {"city", "Rome"}}},
                          {"labels", {{"bought", "1"}}}}}));
}

TEST_F(FormViewTest, ListsOfFilesThatHaveThemStayLists) {
  std::string config = ColumnsConfigText();
  config.replace(config.find("csv {}"), 6, "npz {}").erase(config.find("separator: \"|\""), 14);
  files().Write("train_config.textproto", config);
  files().Write(kExamples,
                R"({"records": [{"record": 7, "columns": {"tags": ["a", "b"], "age": ["3"]}}]})");
  EXPECT_EQ(Examples()[0]["columns"], Json({{"age", "3"}, {"tags", {"a", "b"}}}));
}

TEST_F(FormViewTest, ExamplesOfFeatures) {
  files().Write("train_config.textproto", IdConfigText());
  const Json features = {{"user", "8"}, {"seen", {{"ids", {"7"}}, {"weights", {0.5}}}}};
  const Json file = {
      {"records", {{{"record", 3}, {"features", features}, {"labels", {{"clicked", 1.0}}}}}}};
  files().Write(kExamples, file.dump());
  const Json form = Get(kForm);
  EXPECT_FALSE(form.contains("columns"));
  EXPECT_EQ(form["examples"],
            Json::array({{{"record", 3}, {"features", features}, {"labels", {{"clicked", 1.0}}}}}));
}

TEST_F(FormViewTest, WhatIsNoExampleIsLeftOut) {
  files().Write("train_config.textproto", IdConfigText());
  for (const char* const file :
       {"", "[]", "{\"records\": 7}", "{\"records\": [7, {}, {\"record\": 1}]}",
        R"({"records": [{"record": 1, "features": {"user": 9, "seen": []}}]})",
        R"({"records": [{"record": "1", "features": {"user": 8, "seen": []}}]})",
        R"({"records": [{"record": 1, "columns": {"age": ["1"]}}]})"}) {
    files().Write(kExamples, file);
    EXPECT_THAT(Examples(), IsEmpty()) << file;
  }
}

TEST_F(FormViewTest, WhatIsNoExampleOfColumns) {
  files().Write("train_config.textproto", ColumnsConfigText());
  for (const char* const record :
       {R"({"record": 1, "columns": {"age": 7}})", R"({"record": 1, "columns": {"age": [7]}})",
        R"({"record": 1, "columns": []})", R"({"record": 1, "features": {"age": [7]}})"}) {
    files().Write(kExamples, absl::StrCat("{\"records\": [", record, "]}"));
    EXPECT_THAT(Examples(), IsEmpty()) << record;
  }
}

TEST_F(FormViewTest, WithoutAConfigurationThatMakesSense) {
  EXPECT_EQ(Error(404, Ask("GET", absl::StrCat("/api/v1", kForm))),
            "the model's configuration is not known");
  std::string config = ColumnsConfigText();
  config.replace(config.find("name: \"tags\" columns"), 12, "name: \"none\"");
  files().Write("train_config.textproto", config);
  Poll();
  EXPECT_EQ(Error(404, Ask("GET", absl::StrCat("/api/v1", kForm))),
            "data.features[0].name: expected one of age, tags, city, found \"none\"");
}

}  // namespace
}  // namespace keelson
