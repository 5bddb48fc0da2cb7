#include "src/campaign/mutate/moved_memory.h"

namespace assay {

std::shared_ptr<const std::string> with_shared_memory_moved(const std::string& ptx) {
  const size_t size = ptx.find(".address_size");
  if (size == ptx.npos || ptx.find(".shared ") == ptx.npos) return nullptr;
  const size_t end = ptx.find('\n', size);
  if (end == ptx.npos || ptx.substr(size, end - size).find("//") != ptx.npos) return nullptr;
  std::string moved = ptx;
  moved.insert(end, " .shared .align 1024 .b8 assay_before_all_shared_memory[1024];");
  return std::make_shared<const std::string>(std::move(moved));
}

Program with_shared_memory_moved(const Program& program) {
  Program moved = program;
  bool any = false;
  for (Module& module : moved.modules)
    if (auto text = with_shared_memory_moved(*module.ptx)) module.ptx = std::move(text), any = true;
  if (!any) moved.launches.clear();
  return moved;
}

}  // namespace assay
