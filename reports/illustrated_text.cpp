#include "reports/illustrated_text.h"

#include <fmt/format.h>

#include <cctype>

#include "reports/markup.h"

namespace assay {

void IllustratedText::add_picture(std::string name, const std::string& caption, std::string svg) {
  name = fmt::format("{}_{}", pictures.size() + 1, name);
  // What may stand in a file name and in a link: a kernel of one's own has any name.
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  name += ".svg";
  markdown += fmt::format("![{}]({})\n\n", escape_markdown(caption), name);
  pictures.emplace_back(std::move(name), std::move(svg));
}

}  // namespace assay
