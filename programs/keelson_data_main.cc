// keelson_data: looks into files with columns, divides them, and writes columnar ones.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/command_line.h"
#include "cli/data/convert.h"
#include "cli/data/data_commands.h"
#include "core/base/exit_code.h"
#include "core/base/file_system.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

struct Flags {
  RowFileOptions file;
  std::string separator;
  std::vector<std::string> header;
  int64_t rows = 0;
  ProposalOptions proposal;
  SplitOptions split;
  ConvertOptions convert;
};

absl::StatusOr<int> Done(const absl::Status& status) {
  RETURN_IF_ERROR(status);
  return kExitDone;
}

void AddFile(CLI::App* app, Flags* flags) {
  app->add_option("FILE", flags->file.path,
                  "CSV or TFRecord, plain, .gz or .zst; for stats and inspect also npz or Parquet")
      ->required();
  app->add_option("--format", flags->file.format,
                  "csv, tf_record, npz or parquet (default: by the file's begin npz or parquet, "
                  "tf_record when FILE ends with .tfrecord, else csv)");
  app->add_option(
      "--separator", flags->separator,
      "What is between columns: a character or \"tab\" (default: a comma, in FILE.tsv a "
      "tab)");
  app->add_option("--header", flags->header,
                  "The names of the columns, with commas between them, of a file without them")
      ->delimiter(',');
}

// The file, once the flags are read.
RowFileOptions FileOf(const Flags& flags) {
  RowFileOptions file = flags.file;
  file.csv.set_separator(flags.separator);
  file.csv.mutable_header()->Add(flags.header.begin(), flags.header.end());
  return file;
}

void AddInspect(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* inspect = app->add_subcommand(
      "inspect", "Prints a configuration that trains a model of the file's columns");
  AddFile(inspect, flags);
  inspect->add_option("--label", flags->proposal.label,
                      "The column to predict (default: label, target, click, …, or the last one)");
  inspect
      ->add_option("--rows", flags->proposal.rows,
                   "Looks at the first so many rows, default 10000; 0: at all")
      ->check(NonNegativeNumber());
  inspect->callback([=] {
    *command = [=] {
      flags->proposal.file = FileOf(*flags);
      return Done(PrintProposal(flags->proposal, FileSystem::Real(), &std::cout));
    };
  });
}

void AddStats(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* stats = app->add_subcommand(
      "stats", "Prints what is in each column: kind, missing, distinct, extremes, frequent values");
  AddFile(stats, flags);
  stats->add_option("--rows", flags->rows, "Of the first so many rows; default 0: of all")
      ->check(NonNegativeNumber());
  stats->callback([=] {
    *command = [=] {
      return Done(PrintStatistics(FileOf(*flags), flags->rows, FileSystem::Real(), &std::cout));
    };
  });
}

void AddSplit(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* split = app->add_subcommand("split", "Writes each row into one of two files");
  SplitOptions* const options = &flags->split;
  AddFile(split, flags);
  split->add_option("FIRST", options->first, "File to write, for training")->required();
  split->add_option("SECOND", options->second, "File to write, for evaluation")->required();
  split->add_option("--fraction", options->fraction, "Of the rows into FIRST, default 0.8");
  split->add_option("--by", options->by,
                    "All rows with the same value in this column go into one file");
  split->add_option("--time", options->time,
                    "Rows with lesser values in this column go into FIRST: numbers, or texts that "
                    "sort as they are, such as 2026-11-27");
  split->add_option("--seed", options->seed, "Another one divides in another way, default 1");
  split->callback([=] {
    *command = [=] {
      options->file = FileOf(*flags);
      return Done(SplitRows(*options, FileSystem::Real(), &std::cout));
    };
  });
}

void AddConvert(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* convert = app->add_subcommand(
      "convert", "Writes the records of a job as columnar files, which data.columnar reads");
  ConvertOptions* const options = &flags->convert;
  convert->add_option("CONFIG", options->config, "The job's configuration")->required();
  convert->add_option("--train", options->train, "File to write: the records that train");
  convert->add_option("--eval", options->eval, "File to write: the records that evaluate");
  convert->add_option("--data_dir", options->data_dir, "In place of the configuration's");
  convert->callback([=] {
    *command = [=] { return Done(ConvertRecords(*options, FileSystem::Real(), &std::cout)); };
  });
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  keelson::SetLogName("keelson_data");
  CLI::App app("Looks into files with columns, divides them, and writes columnar ones.");
  app.require_subcommand(1);
  keelson::Flags flags;
  keelson::Command command;
  keelson::AddInspect(&app, &flags, &command);
  keelson::AddStats(&app, &flags, &command);
  keelson::AddSplit(&app, &flags, &command);
  keelson::AddConvert(&app, &flags, &command);
  return keelson::RunCommandLine(&app, &command, argc, argv, &std::cout);
}
