#!/usr/bin/env bash
# Checks the working folder, and writes what the next steps use: findings as SARIF, the comparison
# as Markdown, and the exit status of the job. Values of inputs are variables here: text in a script
# could be code of whoever wrote it.
set -euo pipefail

export JAXSIGHT_SERVER=no # which would wait for further commands after the job
out=$TEMP_FOLDER/jaxsight-reports
mkdir -p "$out"

read -ra paths <<<"$PATHS"
read -ra arguments <<<"$ARGUMENTS"
options=(${TARGET:+--target "$TARGET"} ${PYTHON:+--python "$PYTHON"})

# A target that is not a device of this machine has a compiler, which stays in the cache.
platform=${TARGET%%:*}
if [[ "$platform" == cuda || "$platform" == tpu ]]; then
    "$COMMAND" targets install "$platform" ${PYTHON:+--python "$PYTHON"}
fi

lock=()
[ ! -f jaxsight.lock ] || lock=(--locked)
status=0
"$COMMAND" check "${paths[@]}" "${options[@]}" "${lock[@]}" "${arguments[@]}" --output-format github \
    --report "sarif:$out/jaxsight.sarif" || status=$?
[ "$status" -ne 2 ] || exit 2 # the check itself failed, and has said why

# Without a base, as after a push, there is nothing to compare with.
: >"$out/diff.md"
if [ -n "$BASE" ]; then
    git rev-parse --quiet --verify "$BASE^{commit}" >/dev/null || git fetch --quiet --depth 1 origin "$BASE"
    compared=0
    "$COMMAND" diff "$BASE" "${paths[@]}" "${options[@]}" --markdown >"$out/diff.md" || compared=$?
    if [ "$compared" -ge 2 ]; then # it failed, or no function has written inputs
        : >"$out/diff.md"
        [ "$compared" -eq 3 ] || echo "::warning title=jaxsight::no comparison with $BASE; the log has the reason"
    fi
fi

cat "$out/diff.md" >>"$GITHUB_STEP_SUMMARY"
{
    echo "report=$out/diff.md"
    echo "sarif=$out/jaxsight.sarif"
    echo "status=$status"
} >>"$GITHUB_OUTPUT"
