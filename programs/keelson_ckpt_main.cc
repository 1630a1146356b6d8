// keelson_ckpt: inspects snapshots, and exchanges tensors with other programs.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "cli/ckpt_diff.h"
#include "cli/ckpt_export.h"
#include "cli/ckpt_import.h"
#include "cli/ckpt_inspect.h"
#include "cli/ckpt_merge.h"
#include "cli/ckpt_rollback.h"
#include "cli/ckpt_tables.h"
#include "cli/command_line.h"
#include "cli/export_onnx.h"
#include "cli/export_vectors.h"
#include "cli/table_text.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {
namespace {

constexpr char kSnapshotHelp[] =
    "A snapshot: DIR/model.ckpt-STEP, or a model directory for its newest";
constexpr char kTensorsHelp[] = "A snapshot, a TensorFlow checkpoint, FILE.safetensors or FILE.npz";

struct Flags {
  std::string name;
  std::string other;
  std::string values;
  std::string table;
  uint64_t id = 0;
  int64_t limit = 1000;
  int64_t step = 0;
  double tolerance = 0;
  bool foreign_paths = false;
  ExportOptions to;
  OnnxOptions onnx;
  VectorOptions vectors;
  ImportOptions from;
};

ForeignPaths Foreign(const Flags& flags) {
  return flags.foreign_paths ? ForeignPaths::kFollowed : ForeignPaths::kRefused;
}

void AddForeignPaths(CLI::App* app, Flags* flags) {
  app->add_flag("--foreign_paths", flags->foreign_paths,
                "Reads snapshots outside a model directory, too, where its file 'checkpoint' names "
                "such");
}

absl::StatusOr<int> Done(const absl::Status& status) {
  RETURN_IF_ERROR(status);
  return kExitDone;
}

absl::StatusOr<int> Found(const absl::StatusOr<bool>& fine) {
  RETURN_IF_ERROR(fine.status());
  return *fine ? kExitDone : kExitFound;
}

absl::StatusOr<int> Diff(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> a,
                   OpenTensorSource(flags.name, Foreign(flags)));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> b,
                   OpenTensorSource(flags.other, Foreign(flags)));
  return Found(DiffTensors(a.get(), b.get(), flags.tolerance, &std::cout));
}

absl::StatusOr<int> Export(const Flags& flags) {
  ExportOptions options = flags.to;
  options.foreign = Foreign(flags);
  if (options.format.empty()) {
    options.format = absl::EndsWith(options.out, ".npz") ? "npz"
                     : IsTableText(options.out)          ? "text"
                                                         : "safetensors";
  }
  return Done(ExportTensors(options, &std::cout));
}

absl::StatusOr<int> WriteOnnx(const Flags& flags) {
  OnnxOptions options = flags.onnx;
  options.foreign = Foreign(flags);
  return Done(ExportOnnx(options, &std::cout));
}

absl::StatusOr<int> WriteVectors(const Flags& flags) {
  VectorOptions options = flags.vectors;
  options.foreign = Foreign(flags);
  return Done(ExportVectors(options, &std::cout));
}

absl::StatusOr<int> Import(const Flags& flags) {
  ImportOptions options = flags.from;
  options.foreign = Foreign(flags);
  return Done(ImportTensors(options, &std::cout));
}

void AddList(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* list = app->add_subcommand("list", "Lists the snapshots of a model directory");
  list->add_option("DIR", flags->name, "Model directory")->required();
  AddForeignPaths(list, flags);
  list->callback([=] {
    *command = [=] { return Done(ListSnapshots(flags->name, &std::cout, Foreign(*flags))); };
  });
}

void AddShow(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* show = app->add_subcommand("show", "Prints what a snapshot holds");
  show->add_option("NAME", flags->name, kSnapshotHelp)->required();
  show->add_option("--values", flags->values, "Prints the elements of this tensor instead");
  CLI::Option* const table =
      show->add_option("--table", flags->table, "Prints a row of this embedding table instead");
  table->needs(show->add_option("--id", flags->id, "The id of that row")->needs(table));
  show->add_option("--limit", flags->limit, "At most so many elements, default 1000; 0: all")
      ->check(NonNegativeNumber());
  AddForeignPaths(show, flags);
  show->callback([=] {
    *command = [=] {
      if (!flags->table.empty()) {
        return Done(ShowRow(flags->name, flags->table, flags->id, &std::cout, Foreign(*flags)));
      }
      return Done(flags->values.empty() ? ShowSnapshot(flags->name, &std::cout, Foreign(*flags))
                                        : ShowValues(flags->name, flags->values, flags->limit,
                                                     &std::cout, Foreign(*flags)));
    };
  });
}

void AddVerify(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* verify = app->add_subcommand(
      "verify", "Reads everything and compares the checksums; exits with 1 when there is damage");
  verify->add_option("NAME", flags->name, "DIR/model.ckpt-STEP, or a model directory: all of its")
      ->required();
  AddForeignPaths(verify, flags);
  verify->callback([=] {
    *command = [=] { return Found(VerifySnapshots(flags->name, &std::cout, Foreign(*flags))); };
  });
}

void AddDiff(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* diff = app->add_subcommand(
      "diff", "Compares the tensors of two files; exits with 1 when they differ");
  diff->add_option("A", flags->name, kTensorsHelp)->required();
  diff->add_option("B", flags->other, "Likewise")->required();
  diff->add_option("--tolerance", flags->tolerance,
                   "a and b are equal when |a - b| <= tolerance * max(1, |a|, |b|), default 0")
      ->check(NonNegativeNumber());
  AddForeignPaths(diff, flags);
  diff->callback([=] { *command = [=] { return Diff(*flags); }; });
}

void AddExport(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* to = app->add_subcommand(
      "export", "Writes the model's variables and embedding tables for other programs");
  ExportOptions* options = &flags->to;
  to->add_option("NAME", options->source, kTensorsHelp)->required();
  to->add_option("OUT", options->out, "File to write")->required();
  to->add_option(
      "--format", options->format,
      "safetensors, npz or text (default: npz when OUT ends so, text when it ends with .txt, "
      "else safetensors)");
  to->add_option("--table", options->table,
                 "As text: the embedding table of dim 1 whose rows become lines ID:VALUE");
  to->add_flag("--slots", options->slots, "Also what the optimizer keeps, and global_step");
  to->add_flag("--force", options->force, "Replaces OUT if it exists");
  AddForeignPaths(to, flags);
  to->callback([=] { *command = [=] { return Export(*flags); }; });
}

void AddOnnx(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* onnx =
      app->add_subcommand("onnx", "Writes a snapshot's model for programs that predict with ONNX");
  OnnxOptions* options = &flags->onnx;
  onnx->add_option("NAME", options->snapshot, kSnapshotHelp)->required();
  onnx->add_option("OUT", options->out, "File to write, such as model.onnx")->required();
  onnx->add_option("--config", options->config_path,
                   "TrainConfig with the model (default: train_config.textproto beside the "
                   "snapshot)");
  onnx->add_flag("--force", options->force, "Replaces OUT if it exists");
  AddForeignPaths(onnx, flags);
  onnx->callback([=] { *command = [=] { return WriteOnnx(*flags); }; });
}

void AddVectors(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* vectors = app->add_subcommand(
      "vectors",
      "Writes the vectors of items or queries of a model with the loss IN_BATCH_SOFTMAX");
  VectorOptions* options = &flags->vectors;
  vectors->add_option("NAME", options->snapshot, kSnapshotHelp)->required();
  vectors->add_option("OUT", options->out, "File to write: FILE.npz, else safetensors")->required();
  vectors
      ->add_option("--feature", options->feature,
                   "The feature whose ids get a vector each, that of the first record with the id")
      ->required();
  vectors->add_flag("--queries", options->queries, "The queries' vectors, not the items'");
  vectors->add_option("--config", options->config_path,
                      "TrainConfig (default: train_config.textproto beside the snapshot)");
  vectors->add_option("--data_dir", options->records.data_dir,
                      "The files' directory (default: the configuration's)");
  vectors->add_option("--files", options->records.files,
                      "Names of files in it, with \"*\" for any characters, all of whose records "
                      "are read (default: the records that evaluate)");
  vectors->add_flag("--train", options->records.train, "Reads the records that train");
  vectors->add_option("--batch_size", options->batch_size, "Records at a time, default 1000")
      ->check(CLI::Range(1, 1 << 20));
  vectors->add_flag("--force", options->force, "Replaces OUT if it exists");
  AddForeignPaths(vectors, flags);
  vectors->callback([=] { *command = [=] { return WriteVectors(*flags); }; });
}

void AddImport(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* from = app->add_subcommand(
      "import", "Makes a snapshot for a job to start from: values only, no optimizer's slots");
  ImportOptions* options = &flags->from;
  from->add_option("SOURCE", options->source, kTensorsHelp)->required();
  from->add_option("MODEL_DIR", options->model_dir, "Where the job's snapshots will be")
      ->required();
  from->add_option("--table", options->table,
                   "Where SOURCE is a text of lines ID:VALUE: the embedding table that it is");
  from->add_option("--map", options->renames,
                   "old=new: another name for a tensor or a table; repeatable")
      ->expected(1)
      ->take_all();
  from->add_option("--step", options->step, "Where the count of steps begins, default 0");
  from->add_option(
      "--config", options->config_path,
      "TrainConfig: takes just the variables and tables of its model, in their shapes");
  from->add_flag(
      "--initialize_missing", options->initialize_missing,
      "Variables that SOURCE lacks get the model's initial values, and tables have no rows "
      "then; with --config");
  from->add_flag("--force", options->force,
                 "Into a directory with snapshots, as the newest; forgets that a job was done");
  from->add_flag("--strict", options->strict,
                 "Refuses numbers that are not finite or that float32 cannot hold");
  AddForeignPaths(from, flags);
  from->callback([=] { *command = [=] { return Import(*flags); }; });
}

void AddMerge(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* merge = app->add_subcommand(
      "merge", "Makes of a delta, with the snapshots that it builds on, a whole snapshot");
  merge->add_option("NAME", flags->name, kSnapshotHelp)->required();
  merge
      ->add_option("MODEL_DIR", flags->other,
                   "Another directory, in which the snapshot becomes the newest")
      ->required();
  AddForeignPaths(merge, flags);
  merge->callback([=] {
    *command = [=] {
      return Done(MergeSnapshot(flags->name, flags->other, &std::cout, Foreign(*flags)));
    };
  });
}

void AddRollback(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* rollback = app->add_subcommand(
      "rollback",
      "Lets the next job continue from an earlier snapshot; not while a job runs there");
  rollback->add_option("MODEL_DIR", flags->name, "Model directory")->required();
  rollback->add_option("STEP", flags->step, "The snapshot's step, as list shows it")
      ->required()
      ->check(NonNegativeNumber());
  rollback->callback(
      [=] { *command = [=] { return Done(RollBack(flags->name, flags->step, &std::cout)); }; });
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  keelson::SetLogName("keelson_ckpt");
  CLI::App app("Looks at Keelson's snapshots, and exchanges tensors with other programs.");
  app.require_subcommand(1);
  keelson::Flags flags;
  keelson::Command command;
  keelson::AddList(&app, &flags, &command);
  keelson::AddShow(&app, &flags, &command);
  keelson::AddVerify(&app, &flags, &command);
  keelson::AddDiff(&app, &flags, &command);
  keelson::AddExport(&app, &flags, &command);
  keelson::AddOnnx(&app, &flags, &command);
  keelson::AddVectors(&app, &flags, &command);
  keelson::AddImport(&app, &flags, &command);
  keelson::AddMerge(&app, &flags, &command);
  keelson::AddRollback(&app, &flags, &command);
  return keelson::RunCommandLine(&app, &command, argc, argv, &std::cout);
}
