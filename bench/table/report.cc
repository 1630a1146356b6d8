#include "bench/table/report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson::bench {
namespace {

std::string Text(const Spread& spread) {
  return absl::StrFormat("%.1f (%.1f-%.1f)", spread.median, spread.min, spread.max);
}

Spread SpreadOfList(const nlohmann::json& list) {
  return SpreadOf(list.get<std::vector<double>>());
}

Table TableOfDim(int dim, const std::vector<TableBenchResults::OfTable>& tables) {
  Table table;
  table.title = absl::StrCat("Tables of dim ", dim,
                             ", one thread, 10^6 rows/s and bytes: median (least-most)");
  table.columns = {"table",
                   "insert",
                   "find, half absent",
                   "find, all there",
                   "find, Zipf 1.05",
                   "bytes over values: mean",
                   "worst"};
  for (const auto& [name, growths] : tables) {
    if (growths.empty()) {
      table.rows.push_back({name, "absent", "", "", "", "", ""});
      continue;
    }
    table.rows.push_back({name});
    for (const char* what :
         {"insert", "find_half", "find_hits", "find_zipf", "over_mean", "over_worst"}) {
      table.rows.back().push_back(Text(SpreadOfGrowths(growths, what)));
    }
  }
  return table;
}

Table TableOfThreads(const TableBenchResults& results) {
  Table table;
  table.title = "Keelson's table, dim 32, 10^6 rows/s: median (least-most)";
  table.columns = {"", "1 thread", "2 threads"};
  const auto add = [&](const std::string& name, const nlohmann::json& rates) {
    table.rows.push_back({name, Text(SpreadOfList(rates[0])), Text(SpreadOfList(rates[1]))});
  };
  for (const auto& [name, rates] : results.threads.items()) {
    add(name == "find_half" ? "find, half absent" : "find, all there", rates);
  }
  for (const auto& [name, rates] : results.updates.items()) add("update, " + name, rates);
  return table;
}

Table TableOfGoals(const std::vector<TableGoal>& goals) {
  Table table;
  table.title = "Goals";
  table.columns = {"goal", "wanted", "found", ""};
  for (const TableGoal& goal : goals) {
    table.rows.push_back({goal.goal,
                          absl::StrFormat("%s %.4g", goal.at_least ? ">=" : "<=", goal.wanted),
                          absl::StrFormat("%.2f", goal.found), goal.met() ? "met" : "missed"});
  }
  return table;
}

nlohmann::json ToJson(const std::vector<TableBenchResults::OfTable>& tables) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, growths] : tables) {
    list.push_back({{"name", name}, {"absent", growths.empty()}, {"growths", growths}});
  }
  return list;
}

}  // namespace

Spread SpreadOfGrowths(const std::vector<nlohmann::json>& growths, const std::string& name) {
  std::vector<double> numbers;
  for (const nlohmann::json& growth : growths) {
    const nlohmann::json& found = growth[name];
    if (!found.is_array()) {
      numbers.push_back(found.get<double>());
      continue;
    }
    for (const double number : found) numbers.push_back(number);
  }
  return SpreadOf(std::move(numbers));
}

std::vector<TableGoal> TableGoals(const TableBenchResults& results) {
  const auto& growths32 = results.dim32.front().growths;
  const auto median = [](const nlohmann::json& list) { return SpreadOfList(list).median; };
  const auto grown = [&](const std::string& name) {
    return SpreadOfGrowths(growths32, name).median;
  };
  constexpr double kValueBytes = 32 * sizeof(float);
  std::vector<TableGoal> goals = {
      {"find, dim 32, half absent, 10^6 rows/s", 8, true, grown("find_half")},
      {"find, dim 16, 10^6 rows/s", 10, true, median(results.array16["find"])},
      {"  of random reads of an array", 0.6, true, median(results.array16["ratio"])},
      {"insert, dim 32, 10^6 rows/s", 4, true, grown("insert")},
      {"  longest, ms", 1, false, results.longest["longest_ms"].get<double>()},
  };
  const std::vector<std::pair<std::string, double>> updates = {
      {"adagrad", 4}, {"row-wise adagrad", 6}, {"ftrl", 3}};
  for (const auto& [name, wanted] : updates) {
    const double one = median(results.updates[name][0]), two = median(results.updates[name][1]);
    goals.push_back({absl::StrCat("update, ", name, ", 10^6 rows/s"), wanted, true, one});
    goals.push_back({"  2 threads / 1", 1.8, true, two / one});
  }
  goals.push_back({"bytes over values, mean", 26, false, grown("own_mean")});
  goals.push_back({"  worst", 30, false, grown("own_worst")});
  goals.push_back({"  resident / counted", 1.1, false,
                   (kValueBytes + grown("over_end")) / (kValueBytes + grown("own_end"))});
  return goals;
}

std::vector<Table> TablesOf(const TableBenchResults& results, const std::vector<TableGoal>& goals) {
  Table array;
  array.title = "Dim 16 beside an array, in turns, 10^6 rows/s: median (least-most)";
  array.columns = {"", "rows/s"};
  array.rows = {{"find, all there", Text(SpreadOfList(results.array16["find"]))},
                {"random reads of an array", Text(SpreadOfList(results.array16["array"]))}};
  return {TableOfDim(32, results.dim32), TableOfDim(16, results.dim16), std::move(array),
          TableOfThreads(results), TableOfGoals(goals)};
}

nlohmann::json ToJson(const TableBenchResults& results, const std::vector<TableGoal>& goals) {
  nlohmann::json list = nlohmann::json::array();
  for (const TableGoal& goal : goals) {
    list.push_back({{"goal", goal.goal},
                    {"wanted", goal.wanted},
                    {"at_least", goal.at_least},
                    {"found", goal.found},
                    {"met", goal.met()}});
  }
  return {{"dim32", ToJson(results.dim32)},
          {"dim16", ToJson(results.dim16)},
          {"longest", results.longest},
          {"threads", results.threads},
          {"updates", results.updates},
          {"array16", results.array16},
          {"goals", list}};
}

}  // namespace keelson::bench
