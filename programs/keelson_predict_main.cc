// keelson_predict: scores records with the model of a snapshot.
#include <cstdint>
#include <iostream>

#include "CLI/CLI.hpp"
#include "cli/command_line.h"
#include "cli/predict.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/thread_waits.h"

int main(int argc, char** argv) {
  keelson::BoundSpinning(argv);
  keelson::SetLogName("keelson_predict");
  CLI::App app(
      "Scores records with the model of a snapshot: a line for each, to standard output or to a "
      "file.");
  keelson::PredictOptions options;
  app.add_option("SNAPSHOT", options.snapshot,
                 "DIR/model.ckpt-STEP, or a model directory for its newest")
      ->required();
  app.add_option("--config", options.config_path,
                 "TrainConfig (default: train_config.textproto beside the snapshot)");
  app.add_option("--data_dir", options.records.data_dir,
                 "The files' directory (default: the configuration's)");
  app.add_option("--files", options.records.files,
                 "Names of files in it, with \"*\" for any characters, all of whose records are "
                 "scored (default: the records that evaluate)");
  app.add_flag("--train", options.records.train, "Scores the records that train");
  app.add_flag("--no_labels", options.records.no_labels, "The records have no labels");
  app.add_option("--limit", options.limit, "At most so many records (0: all)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch_size", options.batch_size, "Records at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", options.threads, "That compute (0: one per core)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", options.json, "Lines are JSON objects instead of CSV");
  app.add_flag("--features", options.features, "Each line has the record's features; with --json")
      ->needs("--json");
  app.add_option("--out", options.out, "The file to write (default: standard output)");
  app.add_flag("--force", options.force, "Replaces that file if it exists");
  const keelson::Command command = [&]() -> absl::StatusOr<int> {
    RETURN_IF_ERROR(keelson::PredictRecords(options, &std::cout, &std::cerr));
    return keelson::kExitDone;
  };
  return keelson::RunCommandLine(&app, &command, argc, argv, &std::cout);
}
