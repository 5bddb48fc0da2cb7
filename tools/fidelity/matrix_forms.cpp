#include "tools/fidelity/matrix_forms.h"

#include <fmt/format.h>

#include "src/base/vm/matrix_form.h"

namespace assay::fidelity {
namespace {

using ptx::Type;
using vm::Element;
using vm::format_of;
using vm::MatrixForm;

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// How a register of a fragment is drawn.
DrawnOperand drawn(Element element, int group) {
  switch (element) {
    case Element::f16:
      return {Type::f16x2, Draw::theme, group};
    case Element::bf16:
      return {Type::bf16x2, Draw::theme, group};
    case Element::e4m3:
    case Element::e5m2:
      return {Type::b32, Draw::theme, group, element};
    case Element::f64:
      return {Type::f64, Draw::crossed, group};
    default:
      return format_of(element).integer ? DrawnOperand{Type::b32, Draw::crossed, group}
                                        : DrawnOperand{format_of(element).type, Draw::theme, group};
  }
}

Type result_type(Element element) {
  return element == Element::f16 ? Type::f16x2 : format_of(element).type;
}

/// Appends `count` operands of an element type; "%a4, %a5".
std::string operands(Form& form, int count, Element element, int group) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list += fmt::format("{}%a{}", i ? ", " : "", form.operands.size());
    form.operands.push_back(drawn(element, group));
  }
  return list;
}

std::string results(Form& form, int count, Element element) {
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}%d{}", i ? ", " : "", i);
  form.results.assign(static_cast<size_t>(count), result_type(element));
  return list;
}

/// Text that makes valid metadata of an operand's bits, in %x2: two ascending places of four in every four
/// bits, of tf32 the first two or the last two.
std::string metadata_of(const std::string& operand, Element a) {
  std::string text = fmt::format("and.b32 %x0, {0}, 0x11111111;\nshr.u32 %x1, {0}, 1;\n", operand);
  text += a == Element::tf32 ? "mov.b32 %x1, %x0;\n" : "and.b32 %x1, %x1, 0x11111111;\n";
  text +=  // of bits p, q, s: p | q, p | ~q, p & q, (p ^ q) & ~s, highest first
      "or.b32 %x2, %x0, %x1;\nshl.b32 %x2, %x2, 1;\nxor.b32 %x3, %x1, 0x11111111;\nor.b32 %x3, %x3, %x0;\n"
      "or.b32 %x2, %x2, %x3;\nshl.b32 %x2, %x2, 1;\nand.b32 %x3, %x0, %x1;\nor.b32 %x2, %x2, %x3;\n"
      "shl.b32 %x2, %x2, 1;\nxor.b32 %x0, %x0, %x1;\n";
  text += fmt::format(
      "shr.u32 %x1, {}, 2;\nnot.b32 %x1, %x1;\nand.b32 %x0, %x0, %x1;\nor.b32 %x2, %x2, %x0;\n", operand);
  return text;
}

/// mma{.sp}.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C
Form multiply(const std::string& name) {
  Form form{.name = name};
  std::vector<std::string> parts = parts_of(name);
  MatrixForm matrix;
  matrix.sparse = parts[1].starts_with("sp");
  const bool last = parts[1] == "sp";
  if (matrix.sparse) parts.erase(parts.begin() + 1);
  const size_t first = parts[6] == "satfinite" ? 7 : 6;
  matrix.set_shape(parts[3]);
  matrix.sum = *vm::element_named(parts[first]);
  matrix.a = *vm::element_named(parts[first + 1]);
  matrix.b = *vm::element_named(parts[first + 2]);
  const std::string a = operands(form, matrix.a_registers(), matrix.a, 0),
                    b = operands(form, matrix.b_registers(), matrix.b, 1),
                    c = operands(form, matrix.sum_registers(), matrix.sum, 2),
                    d = results(form, matrix.sum_registers(), matrix.sum);
  form.body = fmt::format("{} {{{}}}, {{{}}}, {{{}}}, {{{}}}", name, d, a, b, c);
  if (matrix.sparse) {
    form.body = metadata_of(fmt::format("%a{}", form.operands.size()), matrix.a) + form.body;
    form.operands.push_back({Type::b32, Draw::crossed, 3});
    form.body += fmt::format(", %x2, {}", last ? vm::selectors_of(matrix) - 1 : 0);
  }
  form.body += ";";
  return form;
}

/// Fills `bytes` bytes at the address in `base` from four operands of each of `threads` threads (`index` is
/// the thread's register), their order turned from one stretch to the next.
std::string fill(const std::string& base, int bytes, int first_operand, int threads,
                 const std::string& index) {
  std::string text;
  const int stretch = 16 * threads;
  for (int at = 0, turn = 0; at < bytes; at += stretch, ++turn) {
    text += fmt::format("add.u32 %x0, {}, {};\nand.b32 %x0, %x0, {};\nshl.b32 %x0, %x0, 4;\n", index,
                        37 * turn, threads - 1);
    const bool whole = bytes - at >= stretch;
    if (!whole) text += fmt::format("setp.lt.u32 %p0, %x0, {};\n", bytes - at);
    text +=
        fmt::format("add.u32 %x0, %x0, {};\n{}st.shared.v4.b32 [%x0+{}], {{%a{}, %a{}, %a{}, %a{}}};\n", base,
                    whole ? "" : "@%p0 ", at, first_operand + turn % 4, first_operand + (turn + 1) % 4,
                    first_operand + (turn + 2) % 4, first_operand + (turn + 3) % 4);
  }
  return text;
}

/// How a wgmma gets its operands.
struct Access {
  int swizzle = 0;  ///< as in the descriptor: 0 none, 1 128, 2 64, 3 32 bytes
  bool a_in_registers = false, a_by_column = false, b_by_row = false, negate_a = false, negate_b = false;
};

constexpr int swizzle_bytes[] = {16, 128, 64, 32};

/// Strides of a dense matrix of `lines` rows (columns), `eights` times 16 bytes (eight lines) of k: leading,
/// stride and size in bytes.
struct Strides {
  int leading, stride, size;
};
Strides strides_of(const Access& access, bool mn_major, int lines, int eights) {
  const int width = swizzle_bytes[access.swizzle], atom = 8 * width;
  if (access.swizzle == 0) return {128, 128 * eights, 128 * eights * (lines / 8)};
  if (!mn_major) return {16, atom, atom * (lines / 8)};
  const int per_atom = width / 2;  // 16-bit rows
  return {eights * atom, atom, eights * atom * ((lines + per_atom - 1) / per_atom)};
}

/// Text that leaves a descriptor in `to` of the matrix at byte `offset` of %matrices.
std::string describe(const std::string& to, int offset, const Access& access, const Strides& strides) {
  const uint64_t fixed = static_cast<uint64_t>(access.swizzle) << 62 |
                         static_cast<uint64_t>(strides.stride >> 4) << 32 |
                         static_cast<uint64_t>(strides.leading >> 4) << 16;
  return fmt::format(
      "add.u32 %x0, %matrices, {};\nand.b32 %x0, %x0, 0x3ffff;\nshr.u32 %x0, %x0, 4;\ncvt.u64.u32 {}, %x0;\n"
      "or.b64 {}, {}, {:#x};\n",
      offset, to, to, to, fixed);
}

/// The parts of a wgmma's name without .sp; what they say.
std::vector<std::string> dense_parts(const std::string& name, MatrixForm& matrix) {
  std::vector<std::string> parts = parts_of(name);
  matrix.sparse = parts[2] == "sp";
  if (matrix.sparse) parts.erase(parts.begin() + 2);
  return parts;
}

/// wgmma.mma_async{.sp}.sync.aligned.SHAPE.D.A.B{.satfinite}
Form multiply_async(const std::string& name, const Access& access) {
  Form form{.name = name};
  MatrixForm matrix;
  const std::vector<std::string> parts = dense_parts(name, matrix);
  matrix.warpgroup = true;
  matrix.set_shape(parts[4]);
  matrix.sum = *vm::element_named(parts[5]);
  matrix.a = *vm::element_named(parts[6]);
  matrix.b = *vm::element_named(parts[7]);
  const bool integer = format_of(matrix.sum).integer, sixteen = format_of(matrix.a).bits == 16;
  const std::string a = operands(form, 4, matrix.a, 0);
  operands(form, 4, matrix.b, 1);
  operands(form, 4, matrix.sum, 2);
  const int sums = matrix.sum_registers();
  const std::string d = results(form, sums, matrix.sum);
  const Strides of_a = strides_of(access, access.a_by_column, 64, 2),
                of_b = strides_of(access, access.b_by_row, matrix.columns(), matrix.sparse ? 4 : 2);
  const int b_offset = (of_a.size + 1023) / 1024 * 1024;
  form.group = 128;
  form.matrix_bytes = b_offset + of_b.size;
  form.body = "bar.sync 0;\nmov.u32 %x1, %tid.x;\n";
  form.body += fill("%matrices", of_a.size, 0, 128, "%x1");
  form.body += fmt::format("add.u32 %x2, %matrices, {};\n", b_offset) + fill("%x2", of_b.size, 4, 128, "%x1");
  for (int i = 0; i < sums; ++i) form.body += fmt::format("mov.b32 %d{}, %a{};\n", i, 8 + i % 4);
  form.body += describe("%y0", 0, access, of_a) + describe("%y1", b_offset, access, of_b);
  if (matrix.sparse) {
    form.body += metadata_of(fmt::format("%a{}", form.operands.size()), matrix.a);
    form.operands.push_back({Type::b32, Draw::crossed, 3});
  }
  // One time in four D = A B.
  form.body +=
      "shr.u32 %x0, %step, 3;\nand.b32 %x0, %x0, 3;\nsetp.ne.u32 %p0, %x0, 0;\n"
      "fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n";
  form.body += fmt::format("{} {{{}}}, {}, %y1, ", name, d,
                           access.a_in_registers ? "{" + a + "}" : std::string("%y0"));
  if (matrix.sparse) form.body += fmt::format("%x2, {}, ", matrix.tiles % vm::selectors_of(matrix));
  form.body += "%p0";
  if (!integer) form.body += fmt::format(", {}, {}", access.negate_a ? -1 : 1, access.negate_b ? -1 : 1);
  if (sixteen && !access.a_in_registers) form.body += fmt::format(", {}", access.a_by_column ? 1 : 0);
  if (sixteen) form.body += fmt::format(", {}", access.b_by_row ? 1 : 0);
  form.body += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;";
  return form;
}

/// The columns of a shape choose how its operands are given, so that a family of 32 shapes has every kind.
Access access_of(const std::string& name) {
  MatrixForm matrix;
  const std::vector<std::string> parts = dense_parts(name, matrix);
  matrix.set_shape(parts[4]);
  const int i = matrix.tiles;
  const bool integer = parts[5] == "s32", sixteen = format_of(*vm::element_named(parts[6])).bits == 16;
  Access access{.swizzle = i % 4, .a_in_registers = i % 3 == 0};
  access.negate_a = !integer && i / 2 % 2 == 1;
  access.negate_b = !integer && i / 8 % 2 == 1;
  access.a_by_column = sixteen && !access.a_in_registers && i / 4 % 2 == 1;
  access.b_by_row = sixteen && (i / 4 + i / 2) % 2 == 1;
  // Under a sparse A a K-major column of B has 64 bytes; how those lie in swizzled lines of 32 is not said.
  if (matrix.sparse && access.swizzle == 3 && !access.b_by_row) access.swizzle = i / 4 % 3;
  return access;
}

/// wmma.mma with its loads and its store, through memory.
Form multiply_wmma(const std::string& name) {
  Form form{.name = name};
  std::vector<std::string> parts = parts_of(name);
  if (parts[3] == "popc") parts.erase(parts.begin() + 2, parts.begin() + 4);
  const bool named = parts.size() >= 11;
  int m = 0, n = 0, k = 0;
  if (std::sscanf(parts[6].c_str(), "m%dn%dk%d", &m, &n, &k) != 3) return form;
  const Element sum = *vm::element_named(parts[7]), a = named ? *vm::element_named(parts[8]) : Element::f16,
                b = named ? *vm::element_named(parts[9]) : Element::f16;
  const auto bytes = [](Element e, int elements) { return elements * format_of(e).bits / 8; };
  const auto count = [&](Element e, int lines, int length) {
    const int used = bytes(e, lines * length) / 128 / (e == Element::f64 ? 2 : 1);
    return e == Element::f16 ? 8 : used;
  };
  const int a_bytes = bytes(a, m * k), b_bytes = bytes(b, k * n), sum_bytes = bytes(sum, m * n);
  // f64 operands are two words each.
  const auto fill_with = [&](Element e, int group) {
    const auto first = static_cast<int>(form.operands.size());
    for (int i = 0; i < 4; ++i)
      form.operands.push_back(e == Element::f64 ? DrawnOperand{Type::b32, Draw::crossed, group}
                                                : drawn(e, group));
    return first;
  };
  const int total = a_bytes + b_bytes + sum_bytes;
  form.matrix_bytes = 4 * total;
  form.body = fmt::format(
      "bar.warp.sync -1;\nmov.u32 %x1, %tid.x;\nshr.u32 %x1, %x1, 5;\nmad.lo.u32 %x1, %x1, {}, %matrices;\n",
      total);
  form.body += fill("%x1", a_bytes, fill_with(a, 0), 32, "%lane");
  form.body +=
      fmt::format("add.u32 %x2, %x1, {};\n", a_bytes) + fill("%x2", b_bytes, fill_with(b, 1), 32, "%lane");
  form.body += fmt::format("add.u32 %x3, %x1, {};\n", a_bytes + b_bytes) +
               fill("%x3", sum_bytes, fill_with(sum, 2), 32, "%lane");
  form.body += "bar.warp.sync -1;\n";
  const auto registers = [](const char* prefix, int first, int number) {
    std::string list;
    for (int i = 0; i < number; ++i) list += fmt::format("{}{}{}", i ? ", " : "", prefix, first + i);
    return "{" + list + "}";
  };
  const char* kind = sum == Element::f64 ? "%mw" : "%m";
  const int na = count(a, m, k), nb = count(b, k, n), nc = sum == Element::f64 ? 2 : sum_bytes / 128;
  const std::string ra = registers(kind, 0, na), rb = registers(kind, na, nb),
                    rc = registers(kind, na + nb, nc);
  const auto stride = [](bool row, int lines, int length) { return row ? length : lines; };
  form.body += fmt::format("wmma.load.a.sync.aligned.{}.{}.shared.{} {}, [%x1], {};\n", parts[4], parts[6],
                           format_of(a).name, ra, stride(parts[4] == "row", m, k));
  form.body += fmt::format("wmma.load.b.sync.aligned.{}.{}.shared.{} {}, [%x2], {};\n", parts[5], parts[6],
                           format_of(b).name, rb, stride(parts[5] == "row", k, n));
  // C by columns, D by rows, so that both orders are seen.
  form.body += fmt::format("wmma.load.c.sync.aligned.col.{}.shared.{} {}, [%x3], {};\n", parts[6],
                           format_of(sum).name, rc, m);
  form.body += fmt::format("{} {}, {}, {}, {};\nbar.warp.sync -1;\n", name, rc, ra, rb, rc);
  form.body += fmt::format("wmma.store.d.sync.aligned.row.{}.shared.{} [%x3], {}, {};\nbar.warp.sync -1;\n",
                           parts[6], format_of(sum).name, rc, n);
  form.body += "shl.b32 %x0, %lane, 2;\nadd.u32 %x0, %x0, %x3;\n";
  const int words = sum_bytes / 128;
  form.results.assign(static_cast<size_t>(words), Type::b32);
  for (int i = 0; i < words; ++i) form.body += fmt::format("ld.shared.b32 %d{}, [%x0+{}];\n", i, 128 * i);
  return form;
}

int matrices_of(const std::string& name) {
  return name.find(".x4") != std::string::npos ? 4 : name.find(".x2") != std::string::npos ? 2 : 1;
}

/// The address of this lane's row, lanes permuted; "[%x0]" or "[%y0]".
std::string row_address(const std::string& name, std::string& body) {
  body +=
      "mad.lo.u32 %x0, %lane, 5, %step;\nand.b32 %x0, %x0, 31;\nshl.b32 %x0, %x0, 4;\n"
      "add.u32 %x0, %warpcells, %x0;\n";
  if (name.find(".shared") != std::string::npos) return "[%x0]";
  body += "cvt.u64.u32 %y0, %x0;\ncvta.shared.u64 %y0, %y0;\n";
  return "[%y0]";
}

/// Every thread stores 16 bytes; the rows' addresses are permuted.
Form load_matrix(const std::string& name) {
  Form form{.name = name};
  for (int i = 0; i < 4; ++i) form.operands.push_back({Type::b32, Draw::crossed, i});
  const std::string to = results(form, matrices_of(name), Element::s32);
  form.results.assign(form.results.size(), Type::b32);
  form.body = "st.shared.v4.b32 [%cell], {%a0, %a1, %a2, %a3};\nbar.warp.sync -1;\n";
  const std::string address = row_address(name, form.body);
  form.body += fmt::format("{} {{{}}}, {};\nbar.warp.sync -1;", name, to, address);
  return form;
}

/// Every thread clears 16 bytes, the rows are stored, every thread reads its bytes back.
Form store_matrix(const std::string& name) {
  Form form{.name = name};
  const int matrices = matrices_of(name);
  std::string from;
  for (int i = 0; i < matrices; ++i) {
    form.operands.push_back({Type::b32, Draw::crossed, i});
    from += fmt::format("{}%a{}", i ? ", " : "", i);
  }
  form.results.assign(4, Type::b32);
  form.body = "mov.b32 %x0, 0;\nst.shared.v4.b32 [%cell], {%x0, %x0, %x0, %x0};\nbar.warp.sync -1;\n";
  const std::string address = row_address(name, form.body);
  form.body += fmt::format("{} {}, {{{}}};\nbar.warp.sync -1;\n", name, address, from);
  form.body += "ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%cell];\nbar.warp.sync -1;";
  return form;
}

}  // namespace

std::optional<Form> matrix_form(const std::string& name) {
  if (name.starts_with("mma.")) return multiply(name);
  if (name.starts_with("wgmma.mma_async.")) return multiply_async(name, access_of(name));
  if (name.starts_with("wmma.mma.")) return multiply_wmma(name);
  if (name.starts_with("ldmatrix.")) return load_matrix(name);
  if (name.starts_with("stmatrix.")) return store_matrix(name);
  if (name.starts_with("movmatrix."))
    return Form{.name = name, .operands = {{Type::b32}}, .results = {Type::b32}, .body = name + " %d0, %a0;"};
  return std::nullopt;
}

std::vector<Form> wgmma_variants() {
  std::vector<Form> made;
  for (const char* types : {"k16.f32.bf16.bf16", "k16.f16.f16.f16", "k8.f32.tf32.tf32"})
    for (const int columns : {64, 136})
      for (int bits = 0; bits < 32; ++bits) {
        Access access{.swizzle = bits & 3};
        access.a_in_registers = bits >> 2 & 1;
        access.a_by_column = bits >> 3 & 1;
        access.b_by_row = bits >> 4 & 1;
        access.negate_a = bits == 5 || bits == 26;
        access.negate_b = bits == 14 || bits == 26;
        const bool sixteen = types[1] == '1';
        if (access.a_by_column && (access.a_in_registers || !sixteen)) continue;
        if (access.b_by_row && !sixteen) continue;
        const std::string name = fmt::format("wgmma.mma_async.sync.aligned.m64n{}{}", columns, types);
        Form form = multiply_async(name, access);
        form.name += fmt::format(" [A {}{}, B {}-major, swizzle {}{}{}]",
                                 access.a_in_registers ? "in registers"
                                 : access.a_by_column  ? "M-major"
                                                       : "K-major",
                                 access.negate_a ? " negated" : "", access.b_by_row ? 'N' : 'K',
                                 access.swizzle ? swizzle_bytes[access.swizzle] : 0,
                                 access.negate_b ? ", B negated" : "", "");
        made.push_back(std::move(form));
      }
  return made;
}

}  // namespace assay::fidelity
