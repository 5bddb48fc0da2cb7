# bash completion of assay: commands, options as each command's --help has them, kernels, files.
_assay() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]:-} before=${COMP_WORDS[COMP_CWORD-1]}
  if [[ $COMP_CWORD -eq 1 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null | awk '/^Subcommands:/ {on = 1; next} on && $1 {print $1}') --help --version" -- "$word")
    return
  fi
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" "$command" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]+' | sort -u)" -- "$word")
    return
  fi
  case $before in
    --dtype | --gate-dtype) mapfile -t COMPREPLY < <(compgen -W "bf16 fp16 fp32" -- "$word") && return ;;
    --decay) mapfile -t COMPREPLY < <(compgen -W "$("$program" list decays 2>/dev/null | awk 'NR > 1 && !/^ / {print $1}')" -- "$word") && return ;;
    --direction) mapfile -t COMPREPLY < <(compgen -W "forward backward both" -- "$word") && return ;;
    --backend) mapfile -t COMPREPLY < <(compgen -W "auto vm cuda" -- "$word") && return ;;
    --arch) mapfile -t COMPREPLY < <(compgen -W "sm_80 sm_89 sm_90" -- "$word") && return ;;
    --annotations) mapfile -t COMPREPLY < <(compgen -W "github" -- "$word") && return ;;
  esac
  local names=''
  case $command in
    list) names="operators kernels instructions causes properties decays defects arithmetic schema" ;;
    verify | fuzz | trace | sweep | mutate | defects) names=$("$program" list kernels --json 2>/dev/null | grep -oE '"kernel": "[^"]+"' | cut -d'"' -f4) ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word"; compgen -f -- "$word")
}
complete -o filenames -F _assay assay
