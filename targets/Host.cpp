//===- Host.cpp - Facts of the machine that runs pto ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "targets/Host.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <algorithm>
#include <hwloc.h>
#include <string>
#include <vector>

namespace pto::targets {
namespace {

/// LLVM's feature string. A virtual machine can hide features that the CPU's
/// name implies (AMX, often), so those are switched off by name.
std::string featureString(const llvm::StringMap<bool> &host,
                          const llvm::Triple &triple, llvm::StringRef cpu) {
  std::vector<std::string> parts;
  llvm::StringSet<> implied;
  if (triple.isX86()) {
    llvm::SmallVector<llvm::StringRef> names;
    llvm::X86::getFeaturesForCPU(cpu, names);
    for (llvm::StringRef name : names)
      implied.insert(name);
  }
  for (const auto &entry : host) {
    if (entry.second)
      parts.push_back(("+" + entry.first()).str());
    else if (!triple.isX86() || implied.contains(entry.first()))
      parts.push_back(("-" + entry.first()).str());
  }
  std::sort(parts.begin(), parts.end());
  return llvm::join(parts, ",");
}

void setVectorFacts(Target &target, const llvm::StringMap<bool> &host,
                    const llvm::Triple &triple) {
  auto has = [&](llvm::StringRef name) { return host.lookup(name); };
  if (triple.isX86()) {
    target.vectorRegisters = 16;
    if (has("avx512f") && has("avx512bw") && has("avx512dq") &&
        has("avx512vl")) {
      target.isa = "avx512";
      target.vectorBits = 512;
      target.vectorRegisters = 32;
    } else if (has("avx2") && has("fma")) {
      target.isa = "avx2";
      target.vectorBits = 256;
    } else {
      target.isa = "generic";
    }
    return;
  }
  target.isa = triple.isAArch64() ? "neon" : "generic";
  target.vectorRegisters = triple.isAArch64() ? 32 : 16;
}

/// The cgroup's limit in whole CPUs, rounded up; 0 without one.
unsigned cgroupCpuLimit() {
  auto readNumbers = [](const char *path, int64_t &first, int64_t &second) {
    auto buffer = llvm::MemoryBuffer::getFileAsStream(path);
    if (!buffer)
      return false;
    auto [a, b] = (*buffer)->getBuffer().trim().split(' ');
    return !a.getAsInteger(10, first) &&
           (b.empty() || !b.getAsInteger(10, second));
  };
  int64_t quota = 0, period = 0, unused = 0;
  if (!readNumbers("/sys/fs/cgroup/cpu.max", quota, period) &&
      !(readNumbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, unused) &&
        readNumbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, unused)))
    return 0;
  if (quota <= 0 || period <= 0)
    return 0;
  return static_cast<unsigned>((quota + period - 1) / period);
}

int64_t cacheBytes(hwloc_topology_t topology, hwloc_obj_t core,
                   hwloc_obj_type_t type, unsigned *line = nullptr) {
  hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology, type, core);
  if (!cache || !cache->attr)
    return -1;
  if (line && cache->attr->cache.linesize)
    *line = cache->attr->cache.linesize;
  return static_cast<int64_t>(cache->attr->cache.size);
}

void setTopologyFacts(Target &target) {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0)
    return;
  if (hwloc_topology_load(topology) != 0) {
    hwloc_topology_destroy(topology);
    return;
  }
  hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
  if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) != 0 ||
      hwloc_bitmap_iszero(allowed))
    hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));

  unsigned cores = 0;
  hwloc_obj_t first = nullptr;
  // Where cores are unknown (some containers), logical processors stand in.
  for (hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PU}) {
    for (hwloc_obj_t core = nullptr;
         (core = hwloc_get_next_obj_by_type(topology, type, core));) {
      if (!hwloc_bitmap_intersects(core->cpuset, allowed))
        continue;
      ++cores;
      if (!first)
        first = core;
    }
    if (cores)
      break;
  }
  if (cores)
    target.cores = cores;
  if (unsigned limit = cgroupCpuLimit())
    target.cores = std::min(target.cores, limit);

  if (first) {
    // A cache that hwloc knows without its size keeps the default.
    int64_t size =
        cacheBytes(topology, first, HWLOC_OBJ_L1CACHE, &target.lineBytes);
    if (size > 0)
      target.l1Bytes = size;
    size = cacheBytes(topology, first, HWLOC_OBJ_L2CACHE);
    if (size > 0)
      target.l2Bytes = size;
    target.l3Bytes =
        std::max<int64_t>(0, cacheBytes(topology, first, HWLOC_OBJ_L3CACHE));
    if (hwloc_obj_t package =
            hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, first))
      if (const char *name = hwloc_obj_get_info_by_name(package, "CPUModel"))
        target.model = llvm::StringRef(name).trim().str();
  }
  hwloc_bitmap_free(allowed);
  hwloc_topology_destroy(topology);
}

} // namespace

Target detectHost() {
  Target target;
  target.name = "cpu";
  target.isHost = true;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::Triple triple(target.triple);
  auto host = llvm::sys::getHostCPUFeatures();
  llvm::StringMap<bool> features;
  for (const auto &entry : host)
    features[entry.first()] = entry.second;
  target.features = featureString(features, triple, target.cpu);
  setVectorFacts(target, features, triple);
  setTopologyFacts(target);
  if (target.model.empty())
    target.model = target.cpu;
  return target;
}

} // namespace pto::targets
