//! The scripts that make a shell ask this program for completions.

/// The supported shells.
pub(crate) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The script for a shell.
pub(crate) fn script(shell: &str) -> Option<&'static str> {
    match shell {
        "bash" => Some(BASH),
        "zsh" => Some(ZSH),
        "fish" => Some(FISH),
        _ => None,
    }
}

const BASH: &str = r#"# Completions of pinfold for bash: source this file, or put it into bash_completion.d.
_pinfold() {
    local current="${COMP_WORDS[COMP_CWORD]}" line
    COMPREPLY=()
    while IFS= read -r line; do
        case "$line" in
            :files) compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
            :dirs) compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
# Resources such as key:deploy are one word.
COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}
complete -F _pinfold pinfold
"#;

const ZSH: &str = r#"#compdef pinfold
# Completions of pinfold for zsh: put this file into a folder of $fpath as _pinfold, or source it after compinit.
_pinfold() {
    local -a lines values
    local line
    lines=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        case "$line" in
            '') ;;
            :files) _files ;;
            :dirs) _files -/ ;;
            *) values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( ${#values} )) && _describe -t values pinfold values
}
if [ "$funcstack[1]" = "_pinfold" ]; then _pinfold "$@"; else compdef _pinfold pinfold; fi
"#;

const FISH: &str = r#"# Completions of pinfold for fish: put this file into ~/.config/fish/completions as pinfold.fish.
function __pinfold_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':dirs'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c pinfold -f -a '(__pinfold_complete)'
"#;
