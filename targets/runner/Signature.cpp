//===- Signature.cpp ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Signature.h"

using namespace pto::targets;
namespace json = llvm::json;

namespace {
struct DTypeInfo {
  DType type;
  const char *name;
  size_t bytes;
  bool isFloat;
};
} // namespace

static constexpr DTypeInfo kTypes[] = {
    {DType::F32, "f32", 4, true},  {DType::F64, "f64", 8, true},
    {DType::F16, "f16", 2, true},  {DType::BF16, "bf16", 2, true},
    {DType::I1, "i1", 1, false},   {DType::I8, "i8", 1, false},
    {DType::I16, "i16", 2, false}, {DType::I32, "i32", 4, false},
    {DType::I64, "i64", 8, false},
};

static constexpr const char *kRoles[] = {"input", "weight", "output", "inout"};

size_t pto::targets::byteSize(DType type) { return kTypes[int(type)].bytes; }
bool pto::targets::isFloat(DType type) { return kTypes[int(type)].isFloat; }
llvm::StringRef pto::targets::name(DType type) {
  return kTypes[int(type)].name;
}

std::optional<DType> pto::targets::parseDType(llvm::StringRef name) {
  for (const DTypeInfo &info : kTypes)
    if (name == info.name)
      return info.type;
  return std::nullopt;
}

int64_t TensorSpec::elements() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

static llvm::Error malformed(const char *what) {
  return llvm::createStringError("malformed request: %s", what);
}

template <typename T>
static llvm::Expected<std::vector<T>> integers(const json::Object &o,
                                               llvm::StringRef key) {
  std::vector<T> result;
  if (const json::Array *array = o.getArray(key))
    for (const json::Value &v : *array) {
      auto n = v.getAsInteger();
      if (!n || *n < 0)
        return malformed(key.data());
      result.push_back(T(*n));
    }
  return result;
}

static json::Object toJson(const TensorSpec &t) {
  return json::Object{{"dtype", name(t.dtype)},
                      {"shape", json::Array(t.shape)}};
}

static llvm::Expected<TensorSpec> tensorFromJson(const json::Object &o) {
  TensorSpec t;
  auto type = parseDType(o.getString("dtype").value_or(""));
  if (!type)
    return malformed("dtype");
  t.dtype = *type;
  auto shape = integers<int64_t>(o, "shape");
  if (!shape)
    return shape.takeError();
  t.shape = std::move(*shape);
  return t;
}

json::Object KernelSignature::toJson() const {
  json::Array args;
  for (const ArgumentSpec &a : arguments) {
    json::Object o = ::toJson(a.tensor);
    o["role"] = kRoles[int(a.role)];
    if (a.indexBound)
      o["index_bound"] = a.indexBound;
    args.push_back(std::move(o));
  }
  return json::Object{{"args", std::move(args)},
                      {"dims", json::Array(dims)},
                      {"reduction", reductionLength},
                      {"flops", flops}};
}

llvm::Expected<KernelSignature>
KernelSignature::fromJson(const json::Object &o) {
  KernelSignature s;
  const json::Array *args = o.getArray("args");
  if (!args)
    return malformed("args");
  for (const json::Value &v : *args) {
    const json::Object *a = v.getAsObject();
    if (!a)
      return malformed("args");
    auto tensor = tensorFromJson(*a);
    if (!tensor)
      return tensor.takeError();
    ArgumentSpec spec;
    spec.tensor = std::move(*tensor);
    spec.indexBound = a->getInteger("index_bound").value_or(0);
    auto role = llvm::find(kRoles, a->getString("role").value_or(""));
    if (role == std::end(kRoles))
      return malformed("role");
    spec.role = Role(role - std::begin(kRoles));
    s.arguments.push_back(std::move(spec));
  }
  auto dims = integers<int64_t>(o, "dims");
  if (!dims)
    return dims.takeError();
  s.dims = std::move(*dims);
  s.reductionLength = o.getInteger("reduction").value_or(1);
  s.flops = o.getInteger("flops").value_or(0);
  return s;
}

json::Object CallSpec::toJson() const {
  json::Array ops, results;
  for (const Operand &op : operands)
    ops.push_back(json::Object{{op.prepacked ? "prepack" : "arg", op.index}});
  for (const TensorSpec &t : prepackResults)
    results.push_back(::toJson(t));
  json::Array args;
  for (unsigned a : prepackArguments)
    args.push_back(a);
  return json::Object{{"operands", std::move(ops)},
                      {"prepack_args", std::move(args)},
                      {"prepack_results", std::move(results)}};
}

llvm::Expected<CallSpec> CallSpec::fromJson(const json::Object &o) {
  CallSpec s;
  if (const json::Array *ops = o.getArray("operands"))
    for (const json::Value &v : *ops) {
      const json::Object *op = v.getAsObject();
      if (!op)
        return malformed("operands");
      if (auto i = op->getInteger("prepack"))
        s.operands.push_back({true, unsigned(*i)});
      else if (auto i = op->getInteger("arg"))
        s.operands.push_back({false, unsigned(*i)});
      else
        return malformed("operands");
    }
  auto args = integers<unsigned>(o, "prepack_args");
  if (!args)
    return args.takeError();
  s.prepackArguments = std::move(*args);
  if (const json::Array *results = o.getArray("prepack_results"))
    for (const json::Value &v : *results) {
      const json::Object *t = v.getAsObject();
      if (!t)
        return malformed("prepack_results");
      auto tensor = tensorFromJson(*t);
      if (!tensor)
        return tensor.takeError();
      s.prepackResults.push_back(std::move(*tensor));
    }
  return s;
}
