// keelson_ctl: prints a running job's status, changes its mode, has it saved, and ends its
// training; prints a configuration's model, and says what its fields are.

#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/command_line.h"
#include "cli/ctl.h"
#include "cli/initial_values_text.h"
#include "cli/model_text.h"
#include "cli/reference/layer_reference.h"
#include "core/base/auth_token.h"
#include "core/base/clock.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/client/services/retry.h"
#include "core/config/config_reference.h"
#include "core/config/train_config.h"
#include "core/model/spec/model_spec.h"
#include "core/rpc/credentials.h"

namespace keelson {
namespace {

struct Flags {
  std::string chief;
  double timeout_seconds = 5;
  std::string auth_token_file;
  std::string job_token_file;
  bool json = false;
  std::string mode;
  std::string reason = "keelson_ctl end";
  std::string config;
  bool dot = false;
  std::string field;
  bool layers = false;
};

absl::StatusOr<Credentials> CredentialsOf(const Flags& flags) {
  Credentials credentials;
  credentials.claim.role = "operator";
  if (!flags.auth_token_file.empty()) {
    ASSIGN_OR_RETURN(credentials.claim.auth_token,
                     ReadToken("--auth_token_file", flags.auth_token_file));
  }
  if (!flags.job_token_file.empty()) {
    ASSIGN_OR_RETURN(credentials.claim.job_token,
                     ReadToken("--job_token_file", flags.job_token_file));
  }
  return credentials;
}

// Repeats `call` until the chief answers or the time is up: all calls are idempotent.
absl::StatusOr<int> AskChief(const Flags& flags,
                             const std::function<absl::Status(ChiefService*)>& call) {
  ASSIGN_OR_RETURN(const std::string address,
                   FindChief(flags.chief, ClusterEnvironment::OfProcess()));
  ASSIGN_OR_RETURN(const Credentials credentials, CredentialsOf(flags));
  const absl::Duration timeout = absl::Seconds(flags.timeout_seconds);
  const std::unique_ptr<ChiefService> chief = ConnectChiefService(address, credentials, timeout);
  RetryOptions options;
  options.give_up_after = timeout;
  options.longest_pause = absl::Milliseconds(200);
  const StopSignal never;
  RETURN_IF_ERROR(CallWithRetries(options, absl::StrCat("no answer from the chief at ", address),
                                  Clock::Real(), &never, [&] { return call(chief.get()); }));
  return kExitDone;
}

void AddCommands(CLI::App* app, Flags* flags, Command* command) {
  app->add_option(
      "--chief,--chief_hosts", flags->chief,
      "host:port of the chief, or of worker 0 where it leads (default: from TF_CONFIG)");
  app->add_option("--timeout", flags->timeout_seconds, "Seconds to wait for an answer, default 5")
      ->check(CLI::Range(0.001, 3600.0));
  app->add_option("--auth_token_file", flags->auth_token_file,
                  "File with the token of those who may change the job, for mode, end and save");
  app->add_option("--job_token_file", flags->job_token_file,
                  "File with the token of the job's tasks, which does as well")
      ->envname("KEELSON_JOB_TOKEN_FILE");
  app->require_subcommand(1);

  CLI::App* status = app->add_subcommand("status", "Prints where the job stands");
  status->add_flag("--json", flags->json, "As one line of JSON: the message JobStatus");
  status->callback([=] {
    *command = [=] {
      return AskChief(
          *flags, [=](ChiefService* chief) { return PrintStatus(chief, flags->json, &std::cout); });
    };
  });

  CLI::App* mode = app->add_subcommand(
      "mode", "Prints how workers wait for each other, or changes it without a restart");
  mode->add_option("MODE", flags->mode,
                   "async: no worker waits; ssp:S: at most S steps ahead of the slowest; sync:R: a "
                   "step is the mean of R gradients; sync:R/T: of the first R of T; sync: of as "
                   "many as there are workers");
  mode->callback([=] {
    *command = [=] {
      return AskChief(*flags, [=](ChiefService* chief) {
        return flags->mode.empty() ? PrintMode(chief, &std::cout)
                                   : ChangeMode(chief, flags->mode, &std::cout);
      });
    };
  });

  CLI::App* end = app->add_subcommand(
      "end",
      "Ends the training before its last step: the steps under way are done, then the job "
      "finishes with a snapshot of them. Needs one of the tokens");
  end->add_option("--reason", flags->reason, "Why, for the log and the dashboard")
      ->capture_default_str();
  end->callback([=] {
    *command = [=] {
      return AskChief(*flags, [=](ChiefService* chief) {
        return EndTraining(chief, flags->reason, &std::cout);
      });
    };
  });
}

void AddSaveCommand(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* save = app->add_subcommand("save",
                                       "Has the job write a snapshot now, of the steps that are "
                                       "done, and waits for it. Needs one of "
                                       "the tokens");
  save->callback([=] {
    *command = [=] {
      return AskChief(*flags, [](ChiefService* chief) { return SaveSnapshot(chief, &std::cout); });
    };
  });
}

absl::StatusOr<int> PrintModel(const Flags& flags) {
  ASSIGN_OR_RETURN(const v1::TrainConfig config, LoadTrainConfig(flags.config));
  const absl::StatusOr<ModelSpec> model = InferModelSpec(config.model());
  if (!model.ok()) {
    return absl::Status(model.status().code(),
                        absl::StrCat(flags.config, ": ", model.status().message()));
  }
  if (flags.dot) {
    std::cout << ModelDot(*model);
    return kExitDone;
  }
  std::cout << ModelTable(*model);
  if (!config.has_initial_values()) return kExitDone;
  const absl::StatusOr<std::string> starts = InitialValuesTable(config, *model);
  if (!starts.ok()) {
    return absl::Status(starts.status().code(),
                        absl::StrCat(flags.config, ": ", starts.status().message()));
  }
  std::cout << "\n" << *starts;
  return kExitDone;
}

void AddModelCommand(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* model = app->add_subcommand(
      "model",
      "Prints the layers of a configuration's model, with shapes, parameters and operations, and "
      "where its variables' first values come from, where initial_values says that");
  model->add_option("CONFIG", flags->config, "A text proto of TrainConfig")->required();
  model->add_flag("--dot", flags->dot, "The graph for Graphviz instead: ... --dot | dot -Tsvg");
  model->callback([=] { *command = [=] { return PrintModel(*flags); }; });
}

absl::StatusOr<int> Explain(const Flags& flags) {
  ASSIGN_OR_RETURN(const ConfigReference reference, ConfigReference::Open(ConfigDescriptors()));
  ASSIGN_OR_RETURN(const std::string text,
                   flags.layers ? LayerReference(reference) : reference.Explain(flags.field));
  std::cout << text;
  return kExitDone;
}

void AddExplainCommand(CLI::App* app, Flags* flags, Command* command) {
  CLI::App* explain =
      app->add_subcommand("explain", "Says what a field of a configuration is, and what it holds");
  CLI::Option* field = explain->add_option(
      "FIELD", flags->field,
      "Its path, as error messages have it: model.layers[2].dense; without it, the whole "
      "configuration");
  explain->add_flag("--layers", flags->layers, "The reference of all layers in Markdown instead")
      ->excludes(field);
  explain->callback([=] { *command = [=] { return Explain(*flags); }; });
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::SetLogName("keelson_ctl");
  CLI::App app(
      "Asks a running Keelson job where it stands, changes its mode, has it saved, and ends its "
      "training.");
  keelson::Flags flags;
  keelson::Command command;
  keelson::AddCommands(&app, &flags, &command);
  keelson::AddSaveCommand(&app, &flags, &command);
  keelson::AddModelCommand(&app, &flags, &command);
  keelson::AddExplainCommand(&app, &flags, &command);
  return keelson::RunCommandLine(&app, &command, argc, argv, &std::cout);
}
