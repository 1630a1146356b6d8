// A job whose tasks find one another by names, as under Kubernetes.
#ifndef KEELSON_TESTS_SUPPORT_NAMED_JOB_H_
#define KEELSON_TESTS_SUPPORT_NAMED_JOB_H_

#include <map>
#include <string>

#include "tests/support/job.h"
#include "tests/support/ports.h"
#include "tests/support/private_names.h"

namespace keelson {

// A Job in which every task is at "mnist-ROLE-INDEX.ns.svc:PORT", all on one port, as each pod has
// an address of its own. The names are PrivateNames and come and go as the test says. Needs
// PrivateNames::Permitted().
class NamedJob {
 public:
  NamedJob(const Job::Layout& layout, const std::string& config);

  // Flags, logs, ends. Its own addresses play no role.
  Job& job() { return job_; }

  // Where the task listens: 127.x.y.z.
  const std::string& Host(const Task& task) const { return hosts_.at(task); }
  int port() const { return ports_[0]; }

  // From now on the task's name stands for its address, or for another one.
  void Publish(const Task& task) { Publish(task, Host(task)); }
  void Publish(const Task& task, const std::string& host) { names_.Set(Name(task), host); }
  // The next start of the task listens on an address that was never used before.
  void Move(const Task& task) { hosts_[task] = FreshHost(); }

  // The operator's, but for the task's own address: there stands the number, for all pods share one
  // network here and may not listen on all of its addresses.
  std::string TfConfig(const Task& task) const;
  std::string TfConfig(const Task& task, const std::string& own_address) const;
  void Start(const Task& task);
  // Publishes it too, as Kubernetes does when the pod is ready.
  void StartPublished(const Task& task);

  // Waits until all have ended. Fails the test unless they ended well, trained and evaluated up to
  // this step.
  void ExpectFinished(int64_t step);

 private:
  static std::string Name(const Task& task);
  std::string FreshHost();

  const ReservedPorts ports_;
  PrivateNames names_;
  Job job_;
  std::map<Task, std::string> hosts_;
  int fresh_hosts_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_NAMED_JOB_H_
