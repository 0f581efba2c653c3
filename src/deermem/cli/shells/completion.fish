# Completion of deermem for fish: deermem completion fish | source

function __deermem_completion
    set -l typed (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l offered (env _DEERMEM_COMPLETE=fish $typed "$current" 2>/dev/null)
    if set -q offered[1]
        string join \n -- $offered
    else
        __fish_complete_path $current
    end
end

complete --command deermem --no-files --keep-order --arguments '(__deermem_completion)'
