#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completions of bash, zsh and fish for command lines of longhaul; shells that are not installed are skipped.
set -euo pipefail
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/here" "$folder/bin"
ln -s "$program" "$folder/bin/longhaul"
export PATH=$folder/bin:$PATH HOME=$folder LC_ALL=C.UTF-8 TERM=dumb
"$program" help completion bash > "$folder/longhaul.bash"
"$program" help completion zsh > "$folder/_longhaul"
"$program" help completion fish > "$folder/longhaul.fish"
cd "$folder/here"
touch mine.json

offers_bash() {
    bash -c 'source "$1"/longhaul.bash
        read -ra COMP_WORDS <<< "$2"
        [[ $2 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _longhaul longhaul
        printf "%s\n" "${COMPREPLY[@]}"' bash "$folder" "$1"
}

offers_fish() {
    fish -c "source $folder/longhaul.fish; complete -C '$1'" | cut -f 1
}

# Runs zsh on a pseudo-terminal, with a compadd that records its arguments.
offers_zsh() {
    rm -f "$folder/offers"
    zsh -f -c '
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $1/dump"
        zpty -w shell "unsetopt auto_list; zstyle \":completion:*\" verbose no"
        zpty -w shell "compadd() {
            [[ \"\$*\" == *-[OAD]* ]] && { builtin compadd \"\$@\"; return }
            local -a hits; builtin compadd -O hits \"\$@\"
            print -rl -- \$hits >> $1/offers; builtin compadd \"\$@\" }"
        zpty -w shell "finished() { echo finished >> $1/offers }; zle -N finished"
        zpty -w shell "bindkey \"^I\" complete-word \"^X\" finished; echo begin > $1/offers"
        until [[ -s $1/offers ]]; do zpty -rt shell said; sleep 0.05; done
        zpty -w -n shell "$2"$'"'\\t\\x18'"'
        until [[ $(tail -n 1 $1/offers) = finished ]]; do zpty -rt shell said; sleep 0.05; done
        ' zsh "$folder" "$1" > "$folder/said" 2>&1
    grep -vx -e begin -e finished -e '' "$folder/offers"
}

failures=0

# expect LINE WORDS...: exactly these words are offered.
expect() {
    local shell found wanted
    wanted=$(printf '%s\n' "${@:2}" | sort -u)
    for shell in bash zsh fish; do
        command -v $shell > /dev/null || continue
        found=$("offers_$shell" "$1" | grep . | sort -u || true)
        if [ "$found" != "$wanted" ]; then
            printf '%s: %s\nfound:  %s\nwanted: %s\n' $shell "$1" "${found//$'\n'/ }" \
                "${wanted//$'\n'/ }"
            failures=$((failures + 1))
        fi
    done
}

names() {
    "$program" list "$1" --format names
}

expect 'longhaul com' compare
expect 'longhaul sim --sched' --schedule --schedule-file
expect 'longhaul verify --ji' ''
expect 'longhaul sim --schedule zig' zigzag
expect 'longhaul sim --schedule ' $(names schedules)
expect 'longhaul compare --cluster dgx' $(names topologies | grep ^dgx)
expect 'longhaul compare --model llama-3' $(names models | grep ^llama-3)
expect 'longhaul compare --model mi' $(names models | grep ^mi) mine.json
expect 'longhaul run --dtype ' bf16 fp16 fp32
expect 'longhaul compare balance' balance-only
expect 'longhaul show zig' zigzag
expect 'longhaul list sch' schedules schedule-options
expect 'longhaul help ver' verify version
expect 'longhaul help completion ' bash zsh fish
expect 'longhaul sim --schedule-file mi' mine.json
expect 'longhaul sim -o mi' mine.json
expect 'longhaul validate --profile mi' mine.json

[ $failures -eq 0 ]
