# Functions of more lines than fit a screen, one a line of output: awk -f long_functions.awk FILE...
# 80 lines; of a kernel's source (.cu, .cuh) 100. The sources are formatted: a function's body ends where a line begins with } in
# the column of its first line.
function indent(line) { match(line, /^ */); return RLENGTH }
function ends() {
  most = FILENAME ~ /\.cuh?$/ ? 100 : 80
  if (FNR - first + 1 > most) printf "%s:%d: a function of %d lines, %d at most\n", FILENAME, first, FNR - first + 1, most
}
FNR == 1 { inside = heading = 0 }
inside {
  if (index($0, closing) == 1) { ends(); inside = 0 }
  next
}
/^ *(\/\/.*|#.*|(public|private|protected):)?$/ { next }
!heading {
  # What opens no function: tables, scopes, statements.
  if ($0 ~ /^ *([.{}]|(if|for|while|switch|else|do|namespace|class|struct|union|enum|extern "C" [{]|return|case|default|try|using|typedef)([ (<{]|$))/) next
  heading = 1; first = FNR; text = ""; closing = sprintf("%" indent($0) "s}", "")
}
{ text = text $0 }
/[;}] *(\/\/.*)?$/ { heading = 0; next }
/{ *(\/\/.*)?$/ {
  heading = 0
  if (text ~ /\(/ && (text ~ /^ *template/ || text !~ /^[^(]* = /)) inside = 1
}
