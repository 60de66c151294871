//===- Progress.cpp -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "tuner/Progress.h"
#include "search/Budget.h"
#include "tuner/TextTable.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace pto;
using namespace pto::tuner;

namespace {
class ConsoleProgress : public Progress {
public:
  ConsoleProgress() : terminal(::isatty(2)) {}
  ~ConsoleProgress() override { finish(); }

  void note(const llvm::Twine &text) override {
    finish();
    llvm::errs() << text << "\n";
  }

  void phase(const llvm::Twine &text, double left) override {
    if (!terminal) {
      llvm::errs() << text << "\n";
      return;
    }
    draw(text.str() + " | " + search::formatDuration(left) + " left");
  }

  void trial(const TuneTask &task, const search::Point &point,
             const db::Trial &result, const Peak &peak, double left) override {
    std::string line;
    llvm::raw_string_ostream os(line);
    os << task.spec.kernel.name << " trial " << task.trials << ": ";
    if (result.outcome == db::Outcome::Ok)
      os << formatTime(result.bestNs);
    else
      os << db::toString(result.outcome);
    if (task.best) {
      os << ", best " << formatTime(task.best->bestNs);
      if (task.spec.flops && peak.gflops > 0)
        os << llvm::format(" (%.0f%% of peak, measured)",
                           100 * task.spec.flops / task.best->bestNs /
                               peak.gflops);
      if (task.byDefault && task.byDefault->bestNs > 0)
        os << llvm::format(", %.2fx default",
                           task.byDefault->bestNs / task.best->bestNs);
    }
    os << " | " << search::formatDuration(left) << " left";
    if (terminal)
      draw(line);
    else
      llvm::errs() << line << "\n";
  }

  void finish() override {
    if (drawn)
      llvm::errs() << "\r\033[K";
    drawn = false;
  }

private:
  void draw(std::string line) {
    // Not more often than eyes can follow.
    auto now = std::chrono::steady_clock::now();
    if (drawn && now - last < std::chrono::milliseconds(50))
      return;
    last = now;
    winsize size = {};
    size_t columns = 100;
    if (::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
      columns = size.ws_col;
    if (line.size() >= columns)
      line = line.substr(0, columns - 1);
    llvm::errs() << "\r" << line << "\033[K";
    drawn = true;
  }

  bool terminal, drawn = false;
  std::chrono::steady_clock::time_point last;
};
} // namespace

std::unique_ptr<Progress> pto::tuner::makeConsoleProgress() {
  return std::make_unique<ConsoleProgress>();
}
