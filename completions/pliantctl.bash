# bash completion for pliantctl; made by 'pliantctl completion bash'
_pliantctl_words()
{
    local i options=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --connect | -c | --state-dir | --key | --server-key)
            options+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}")
            ;;
        esac
    done
    pliantctl "${options[@]}" --timeout 500ms completion "$1" 2>/dev/null
}

_pliantctl()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' words=0 i word options=' --connect --state-dir --key --server-key --timeout --json --help --version'
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $command,$word in
        *,-c | *,--connect | *,--state-dir | *,--key | *,--server-key | *,--timeout | submit,--define | submit,-D | submit,--id | stop,--dir | savepoint,--dir | drain,--deadline | drain,-d | drain,--reason | drain,-r | logs,--attempt | logs,--tail | logs,-n | record,--output | record,-o | keygen,--role | keygen,-r | keygen,--node | keygen,-n | keygen,--keys | keygen,-k | keygen,--output | keygen,-o) ((i++)) ;;
        *,-*) ;;
        ,*) command=$word ;;
        *) ((words++)) ;;
        esac
    done
    COMPREPLY=()
    case $command,$prev in
    *,--connect | *,-c)
        :
        return
        ;;
    *,--state-dir)
        COMPREPLY=($(compgen -d -- "$cur"))
        return
        ;;
    *,--key)
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    *,--server-key)
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    *,--timeout)
        :
        return
        ;;
    submit,--define | submit,-D)
        :
        return
        ;;
    submit,--id)
        :
        return
        ;;
    stop,--dir)
        COMPREPLY=($(compgen -d -- "$cur"))
        return
        ;;
    savepoint,--dir)
        COMPREPLY=($(compgen -d -- "$cur"))
        return
        ;;
    drain,--deadline | drain,-d)
        :
        return
        ;;
    drain,--reason | drain,-r)
        COMPREPLY=($(compgen -W 'preemption scale-down upgrade idle' -- "$cur"))
        return
        ;;
    logs,--attempt)
        :
        return
        ;;
    logs,--tail | logs,-n)
        :
        return
        ;;
    record,--output | record,-o)
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    keygen,--role | keygen,-r)
        COMPREPLY=($(compgen -W 'agent operator viewer server' -- "$cur"))
        return
        ;;
    keygen,--node | keygen,-n)
        COMPREPLY=($(compgen -W "$(_pliantctl_words nodes)" -- "$cur"))
        return
        ;;
    keygen,--keys | keygen,-k)
        COMPREPLY=($(compgen -d -- "$cur"))
        return
        ;;
    keygen,--output | keygen,-o)
        COMPREPLY=($(compgen -d -- "$cur"))
        return
        ;;
    esac
    case $command in
    '')
        [[ $cur == -* ]] || options='submit list status watch scale cancel stop remove savepoint checkpoint drain undrain nodes tasks rescales failures checkpoints logs record keygen shutdown ping completion'
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
        return
        ;;
    submit)
        options+=' --define --dry-run --id --wait'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -f -- "$cur"))
            return
        fi
        ;;
    list)
        options+=' --all'
        ;;
    status)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    watch)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    scale)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    cancel)
        options+=' --wait'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    stop)
        options+=' --dir --drain'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    remove)
        options+=' --force'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    savepoint)
        options+=' --dir --cancel'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    checkpoint)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    drain)
        options+=' --deadline --reason'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words nodes)" -- "$cur"))
            return
        fi
        ;;
    undrain)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words nodes)" -- "$cur"))
            return
        fi
        ;;
    nodes)
        options+=''
        ;;
    tasks)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    rescales)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    failures)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    checkpoints)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    logs)
        options+=' --attempt --stderr --follow --tail'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    record)
        options+=' --output'
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W "$(_pliantctl_words jobs)" -- "$cur"))
            return
        fi
        ;;
    keygen)
        options+=' --role --node --keys --output'
        if [[ $cur != -* && $words == 0 ]]; then
            :
            return
        fi
        ;;
    shutdown)
        options+=' --stop-jobs'
        ;;
    ping)
        options+=''
        ;;
    completion)
        options+=''
        if [[ $cur != -* && $words == 0 ]]; then
            COMPREPLY=($(compgen -W 'bash zsh jobs nodes' -- "$cur"))
            return
        fi
        ;;
    esac
    [[ $cur != -* ]] || COMPREPLY=($(compgen -W "$options" -- "$cur"))
}
complete -o filenames -F _pliantctl pliantctl
