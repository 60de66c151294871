//===- ScriptedEvaluator.h - Answers without compiling ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// A device on which candidates behave as a function says. Its clock stands
// still but for what compiling and measuring cost.
//
//===----------------------------------------------------------------------===//
#ifndef PTO_TESTS_UNIT_TUNER_SCRIPTEDEVALUATOR_H
#define PTO_TESTS_UNIT_TUNER_SCRIPTEDEVALUATOR_H

#include "tuner/Evaluator.h"
#include <functional>

namespace pto::tuner {

/// What happens to a candidate.
struct Behaviour {
  db::Outcome compiles = db::Outcome::Ok;
  db::Outcome runs = db::Outcome::Ok;
  double ns = 0;
  double confirmNs = 0; ///< When compared in turns; 0: the same.
  std::string code;     ///< Hash of its object; empty: all differ.
};

class ScriptedEvaluator : public Evaluator {
public:
  std::function<Behaviour(const KernelSource &, const CandidateRequest &)>
      script;
  db::Outcome referenceOutcome = db::Outcome::Ok;
  double seconds = 0; ///< The clock.
  unsigned compilations = 0, measurements = 0, references = 0, comparisons = 0;
  std::function<void()> onMeasure;

  llvm::Expected<Peak> peak() override { return Peak{100, 100, 10, "test"}; }

  llvm::Expected<MeasureResult> prepare(const KernelSource &) override {
    ++references;
    MeasureResult r;
    r.outcome = referenceOutcome;
    return r;
  }

  llvm::Error
  compile(const KernelSource &kernel, llvm::ArrayRef<CandidateRequest> requests,
          llvm::function_ref<void(size_t, CompileResult)> done) override {
    for (auto [i, request] : llvm::enumerate(requests)) {
      ++compilations;
      seconds += 0.1;
      Behaviour b = script(kernel, request);
      CompileResult r;
      r.outcome = b.compiles;
      if (r.outcome != db::Outcome::Ok)
        r.message = "as scripted";
      std::string id = kernel.hash + request.scheduleName;
      for (auto &[name, value] : request.knobs)
        id += "," + name + "=" + value;
      r.object = id;
      r.objectHash = b.code.empty() ? db::hashText(id) : b.code;
      r.text = "filled " + id;
      r.compileMs = 100;
      behaviours[id] = b;
      done(i, r);
    }
    return llvm::Error::success();
  }

  llvm::Expected<MeasureResult> measure(const KernelSource &,
                                        const CompileResult &candidate,
                                        double) override {
    ++measurements;
    seconds += 0.1;
    if (onMeasure)
      onMeasure();
    const Behaviour &b = behaviours[candidate.object];
    MeasureResult r;
    r.outcome = b.runs;
    if (b.runs == db::Outcome::Ok)
      r.samplesNs = {b.ns * 1.01, b.ns, b.ns * 1.02};
    else
      r.message = "as scripted";
    return r;
  }

  llvm::Expected<std::vector<MeasureResult>>
  compare(const KernelSource &,
          llvm::ArrayRef<const CompileResult *> candidates) override {
    ++comparisons;
    std::vector<MeasureResult> all;
    for (const CompileResult *c : candidates) {
      const Behaviour &b = behaviours[c->object];
      MeasureResult r;
      r.samplesNs = {b.confirmNs > 0 ? b.confirmNs : b.ns};
      all.push_back(r);
    }
    return all;
  }

  std::string policy() const override { return "scripted"; }

private:
  std::map<std::string, Behaviour> behaviours;
};

} // namespace pto::tuner

#endif // PTO_TESTS_UNIT_TUNER_SCRIPTEDEVALUATOR_H
