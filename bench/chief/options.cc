#include "bench/chief/options.h"

#include <filesystem>
#include <system_error>

#include "CLI/CLI.hpp"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"

namespace keelson::bench {
namespace {

constexpr int kQuickRepeat = 2;
constexpr double kQuickSeconds = 1;

// The chief that was built with this program.
std::string ChiefBeside() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).replace_filename("chief");
}

struct Flags {
  ChiefBenchOptions options;
  LifeOptions life;
  bool quick = false;
  double heartbeat_seconds = 0.25;
  std::vector<std::string> modes = {"async", "sync"};
};

void AddFlags(CLI::App* app, Flags* flags) {
  MeasureOptions* const measure = &flags->options.measure;
  app->add_option("--workers", flags->options.workers, "Numbers of workers, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app->add_option("--servers", measure->servers, "Parameter servers")->check(CLI::Range(1, 1000));
  app->add_option("--chief", measure->program,
                  "The program to measure (default: the chief beside this program)")
      ->check(CLI::ExistingFile);
  app->add_option("--connections", measure->connections, "That the workers share")
      ->check(CLI::Range(1, 4096));
  app->add_option("--modes", flags->modes, "async, sync or both")
      ->delimiter(',')
      ->check(CLI::IsMember({"async", "sync"}));
  app->add_option("--seconds", measure->seconds, "Measured time of a load (default: 3, quick 1)")
      ->check(CLI::Range(0.1, 600.0));
  app->add_option("--repeat", measure->repeat, "Repetitions (default: 3, quick 2)")
      ->check(PositiveNumber());
  app->add_option("--call_rate", measure->calls_per_second,
                  "Calls a second where one kind of call is measured by itself")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 100000.0));
  app->add_option("--step_rate", measure->steps_per_second, "Steps a second of each worker")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 100.0));
  app->add_option("--heartbeat_seconds", flags->heartbeat_seconds,
                  "Between two heartbeats of a worker")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 5.0));
  app->add_option("--life", flags->life.life_seconds,
                  "Only the chief's memory over many lives of workers, each of so many seconds")
      ->check(CLI::Range(2.5, 3600.0));
  app->add_option("--lives", flags->life.lives, "Of each worker, with --life")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 10000.0));
  app->add_flag("--quick", flags->quick, "Short and few measurements");
  app->add_option("--json", flags->options.json_path, "File for the results, as one JSON object");
  app->add_flag("--markdown", flags->options.markdown, "Tables as in docs/scale.md");
}

void Complete(const CLI::App& app, Flags* flags) {
  MeasureOptions* const measure = &flags->options.measure;
  if (flags->quick && app.count("--seconds") == 0) measure->seconds = kQuickSeconds;
  if (flags->quick && app.count("--repeat") == 0) measure->repeat = kQuickRepeat;
  if (measure->program.empty()) measure->program = ChiefBeside();
  measure->heartbeats_per_second = 1 / flags->heartbeat_seconds;
  measure->asynchronous = false;
  measure->synchronous = false;
  for (const std::string& mode : flags->modes) {
    (mode == "async" ? measure->asynchronous : measure->synchronous) = true;
  }
  if (app.count("--life") > 0) flags->options.life = flags->life;
}

}  // namespace

std::variant<ChiefBenchOptions, int> ParseChiefBenchOptions(int argc, const char* const* argv) {
  Flags flags;
  CLI::App app(
      "Measures what a chief costs with so many workers: a real chief, with simulated workers and "
      "servers.");
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    LogError(error.what(), "; see --help");
    return kExitPermanent;
  }
  Complete(app, &flags);
  return flags.options;
}

}  // namespace keelson::bench
