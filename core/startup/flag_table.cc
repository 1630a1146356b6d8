#include "core/startup/flag_table.h"

#include <nlohmann/json.hpp>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

using Json = nlohmann::ordered_json;

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

bool WantsFlagTable(const CLI::App& app) {
  const CLI::Option* help = app.get_help_ptr();
  return help->count() > 0 && help->results().back() == "json";
}

}  // namespace keelson
