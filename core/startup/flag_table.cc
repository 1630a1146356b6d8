#include "core/startup/flag_table.h"

#include <nlohmann/json.hpp>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

using Json = nlohmann::ordered_json;

// What CLI11 keeps of a flag without a value.
constexpr absl::string_view kNoForm = "true";

absl::Status UnknownForm(absl::string_view form) {
  return absl::InvalidArgumentError(
      absl::StrCat("--help: expected text or json, found \"", form, "\""));
}

Json Row(const CLI::Option& option) {
  return {{"name", option.get_lnames().front()},
          {"kind", option.get_items_expected_max() == 0 ? "flag" : "option"},
          {"type", option.get_type_name()},
          {"default", option.get_default_str()},
          {"group", option.get_group()},
          {"help", option.get_description()}};
}

}  // namespace

std::string FlagTable(const CLI::App& app) {
  Json rows = Json::array();
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr()) rows.push_back(Row(*option));
  }
  return absl::StrCat(Json({{"flags", rows}}).dump(1), "\n");
}

absl::StatusOr<bool> WantsFlagTable(const CLI::App& app) {
  const std::string& form = app.get_help_ptr()->results().back();
  if (form == "json") return true;
  if (form == "text" || form == kNoForm) return false;
  return UnknownForm(form);
}

}  // namespace keelson
