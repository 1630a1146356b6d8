// The values that a script sees, beside those that the client has.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_VALUES_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_VALUES_H_

#include <cstddef>
#include <vector>

#include "core/client/services/parameter_client.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"

namespace keelson {

// A model with tables fetches rows while the script computes, and whatever is fetched may bring
// new values of variables, too; likewise the answers to gradients that are offered while the script
// computes others. So the client has arrays of values of its own there, and the script's are
// copies, made when the script expects new ones. Used by one thread.
class ScriptValues {
 public:
  // `script`: the arrays that the script sees, which outlive this.
  ScriptValues(const ParameterMemory& script, const std::vector<VariableSpec>& variables,
               bool holds);

  // What the client works on, as long as this object.
  const ParameterMemory& lent() const { return lent_; }
  // Whether the client has arrays of its own.
  bool holds() const { return !own_.empty(); }
  // The script gets the client's values, of all variables or of one.
  void Publish();
  void Publish(size_t variable);

 private:
  const std::vector<absl::Span<float>> seen_;
  std::vector<Tensor> own_;  // by variable; none unless values are held
  ParameterMemory lent_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_VALUES_H_
