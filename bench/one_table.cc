#include "bench/one_table.h"

#include <iostream>

#include "core/base/exit_code.h"
#include "core/base/log.h"

namespace keelson::bench {

void AddOneTableFlags(CLI::App* app, OneTableOptions* options) {
  app->add_option("--repeat", options->repeat, "measurements of each")->check(CLI::Range(1, 1000));
  app->add_flag("--json", options->json,
                "One JSON object on standard output, the table on standard error");
  app->add_flag("--markdown", options->markdown, "The table of docs/performance.md");
}

void Print(const OneTableOptions& options, const Table& table, const nlohmann::json& json,
           absl::string_view below) {
  (options.json ? std::cerr : std::cout)
      << Render(table, options.markdown ? TableStyle::kMarkdown : TableStyle::kText) << below;
  if (options.json) std::cout << json.dump(2) << std::endl;
}

int RunProgram(CLI::App* app, int argc, char** argv, absl::FunctionRef<absl::Status()> run) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);  // --help
    LogError(error.what(), "; see --help");
    return kExitPermanent;
  }
  const absl::Status status = run();
  if (status.ok()) return 0;
  LogError(status.message());
  return kExitPermanent;
}

nlohmann::json SpreadAsJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

}  // namespace keelson::bench
