#compdef deermem
# Completion of deermem for zsh: eval "$(deermem completion zsh)" behind compinit, or as _deermem in $fpath.

_deermem() {
    local line
    local -a typed offered
    typed=("${(@Q)words[1,CURRENT]}")
    for line in "${(@f)$(_DEERMEM_COMPLETE=zsh "${typed[@]}" 2>/dev/null)}"; do
        [[ -n $line ]] && offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#offered} )); then
        _describe -V deermem offered
    else
        _files
    fi
}

if [[ ${funcstack[1]-} == _deermem ]]; then
    _deermem "$@"
else
    compdef _deermem deermem
fi
