# Part of ./test, which sources it: runs tests, runs the ones that fail once more, and adds up what came out.
# Needs bash, sed and awk only. Uses nextest if it is installed, else plain cargo.

# What the runners printed and what came of each test, for the summary and for whoever reads it later.
kept=$PWD/target/test-output
# suite, outcome (pass or fail), seconds (empty with plain cargo), binary, test
results=$kept/results
# A test that cannot get the rights it needs appends its name and the reason.
export PINFOLD_TEST_NOT_RUN=$kept/not-run
# More failures than this are not a matter of chance, and running each of them alone would take too long.
most_again=25

passed=0 failed=0 flaky=0
strict=no

with_nextest() { command -v cargo-nextest >/dev/null 2>&1; }

begin_results() {
    rm -rf "$kept"
    mkdir -p "$kept"
    : >"$results"
    : >"$PINFOLD_TEST_NOT_RUN"
}

# Builds all test programs and all programs that they start: one target folder and one set of features for every suite.
build_tests() {
    cargo build --workspace --bins --locked
    if with_nextest; then cargo nextest run --workspace --locked --no-run; else cargo test --workspace --locked --tests --no-run; fi
}

# The modules of the targets `runs` (and `shim`) that are suites of their own.
apart=(hostile security programs real terminal crashes)
targets='(binary_id(pinfold::runs) | binary_id(pinfold-shim::shim))'

# Runs the tests of one such module.
module() {
    if with_nextest; then
        cargo nextest run --workspace --locked --no-fail-fast -E "$targets & test(/^$1::/)"
    else
        cargo test --workspace --locked --test runs --test shim --no-fail-fast -- "$1::"
    fi
}

# Runs every test that is in no such module.
all_but_modules() {
    local pattern skips=() name
    pattern=$(IFS='|'; echo "${apart[*]}")
    for name in "${apart[@]}"; do skips+=(--skip "$name::"); done
    if with_nextest; then
        cargo nextest run --workspace --locked --no-fail-fast -E "not ($targets & test(/^($pattern)::/))"
    else
        echo "cargo-nextest is not installed: plain cargo runs the same tests"
        # Not --bins: it would run the program that the benchmarks start, which is not a test.
        cargo test --workspace --locked --tests --no-fail-fast -- "${skips[@]}"
    fi
}

# Runs the tests of a target that need programs which are not installed everywhere.
ignored_of() {
    if with_nextest; then
        cargo nextest run --workspace --locked --no-fail-fast --run-ignored only -E "binary_id(pinfold::$1)"
    else
        cargo test --workspace --locked --test "$1" -- --ignored
    fi
}

# Runs one test of a suite with nothing beside it.
alone() {
    local suite="$1" binary="$2" test="$3"
    if declare -F "alone_$suite" >/dev/null; then
        "alone_$suite" "$binary" "$test"
    elif with_nextest; then
        cargo nextest run --workspace --locked --run-ignored all -E "binary_id(=$binary) & test(=$test)"
    else
        cargo test --workspace --locked --tests -- --include-ignored --exact "$test"
    fi
}

plain() { sed 's/\x1b\[[0-9;]*m//g' "$1"; }

# What a log says of each test: outcome, seconds, binary, test. Of a test that was run twice, the last outcome.
outcomes() {
    plain "$1" | awk -v OFS='\t' '
        function note(outcome, seconds, binary, name) {
            if (!((binary, name) in last)) order[++many] = binary SUBSEP name
            last[binary, name] = outcome; took[binary, name] = seconds
        }
        # nextest:        PASS [   0.005s] (  1/278) pinfold-core account::tests::a_rule
        /^ +(PASS|LEAK|FAIL|TIMEOUT|ABORT|LEAK-FAIL|SIG[A-Z0-9]+) +\[ *[>0-9.]+s\]/ {
            outcome = ($1 == "PASS" || $1 == "LEAK") ? "pass" : "fail"
            match($0, /\[ *[>0-9.]+s\]/); seconds = substr($0, RSTART + 1, RLENGTH - 3); gsub(/[ >]/, "", seconds)
            note(outcome, seconds, $(NF - 1), $NF)
        }
        # cargo test:      Running tests/runs/main.rs (target/debug/deps/runs-0123456789abcdef)
        /^ +Running .*\(.*\)$/ { binary = $NF; gsub(/^\(.*\/|-[0-9a-f]+\)$/, "", binary) }
        /^test .* \.\.\. (ok|FAILED)/ { note($NF == "FAILED" ? "fail" : "pass", "", binary, $2) }
        END { for (n = 1; n <= many; n++) { split(order[n], at, SUBSEP); print last[at[1], at[2]], took[at[1], at[2]], at[1], at[2] } }'
}

# Adds what a suite's log says to the results and to the counts. `status` is how the suite ended.
count() {
    local suite="$1" log="$2" status="$3" good bad
    good=$(plain "$log" | summary_of passed)
    bad=$(plain "$log" | summary_of '(failed|timed out|exec failed)')
    # A suite that fails without a failing test has failed nevertheless.
    [ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
    had_passed=$passed had_failed=$failed
    passed=$((passed + good)) failed=$((failed + bad))
    outcomes "$log" | sed "s/^/$suite\t/" >>"$results"
}

# The sum of a number in the runners' own summaries: nextest's `N tests run: N passed, N failed`, cargo's `N passed; N failed`.
summary_of() {
    { grep -E '^ +Summary \[|^test result: ' || true; } | { grep -oE "[0-9]+ $1" || true; } | awk '{ n += $1 } END { print n + 0 }'
}

# Runs the failed tests of a suite once more, each alone. Returns 0 if all of them pass then and flaky tests are accepted.
again() {
    local suite="$1" failures=() line binary test log="$kept/$1.again.log" outcome=0
    mapfile -t failures < <(awk -F'\t' -v suite="$suite" '$1 == suite && $2 == "fail" { print $4 "\t" $5 }' "$results")
    if [ ${#failures[@]} = 0 ]; then
        as_a_whole "$suite"
        return $?
    fi
    if [ ${#failures[@]} -gt $most_again ]; then
        echo "${#failures[@]} tests of $suite failed: too many to be chance, so none is run again"
        return 1
    fi
    : >"$log"
    for line in "${failures[@]}"; do
        IFS=$'\t' read -r binary test <<<"$line"
        say "$suite: $binary $test failed; once more, alone"
        if alone "$suite" "$binary" "$test" 2>&1 | tee -a "$log"; [ "${PIPESTATUS[0]}" = 0 ]; then
            flaky=$((flaky + 1))
            printf '%s\tflaky\t\t%s\t%s\n' "$suite" "$binary" "$test" >>"$results"
            if [ "$strict" = yes ]; then outcome=1; else passed=$((passed + 1)) failed=$((failed - 1)); fi
        else
            outcome=1
        fi
    done
    return "$outcome"
}

# Suites whose runner does not name its tests in a way that one of them could be run alone.
whole=(api)

# Runs such a suite once more.
as_a_whole() {
    local suite="$1" first="$kept/$1.log"
    [[ " ${whole[*]} " == *" $suite "* ]] || return 1
    say "$suite failed; once more"
    mv "$first" "$kept/$suite.first.log"
    passed=$had_passed failed=$had_failed
    attempt "$suite" "suite_$suite"
    [ $? = 0 ] || return 1
    flaky=$((flaky + 1))
    printf '%s\tflaky\t\t%s\tall of it\n' "$suite" "$suite" >>"$results"
    [ "$strict" = no ] || { failed=$((failed + 1)); return 1; }
}

# Prints the ten slowest tests, the flaky ones and the ones that were not run; ends with the counts.
report() {
    if awk -F'\t' '$3 != "" { found = 1 } END { exit !found }' "$results"; then
        printf '\nslowest tests:\n'
        sort -t$'\t' -k3,3nr "$results" | head -n 10 | awk -F'\t' '{ printf "%8.1f s  %-10s %s %s\n", $3, $1, $4, $5 }'
    fi
    if [ "$flaky" -gt 0 ]; then
        printf '\n%d flaky: failed, then passed alone; the outputs are in %s/SUITE.log and SUITE.again.log\n' "$flaky" "${kept#"$PWD/"}"
        awk -F'\t' '$2 == "flaky" { printf "  %-10s %s %s\n", $1, $4, $5 }' "$results"
    fi
    local missing
    missing=$(sort -u "$PINFOLD_TEST_NOT_RUN" | grep -c . || true)
    if [ "$missing" -gt 0 ]; then
        printf '\nnot run: needs root (%d):\n' "$missing"
        sort -u "$PINFOLD_TEST_NOT_RUN" | awk -F'\t' '{ printf "  %s: %s\n", $1, $2 }'
        # Each of them counted as passed: a test cannot say that it was not run in any other way.
        passed=$((passed - missing))
        if [ "$(id -u)" = 0 ]; then
            echo "error: nothing may be left out when ./test runs as root" >&2
            failed=$((failed + missing)) outcome=1
        fi
    fi
    printf '\n%d passed, %d failed%s\n' "$passed" "$failed" "$([ "$missing" = 0 ] || [ "$(id -u)" = 0 ] || echo ", $missing skipped")"
}
