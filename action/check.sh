#!/usr/bin/env bash
# Checks the working folder, and writes what the next steps use: a report in Markdown and in SARIF,
# and the exit status of the job. Values of inputs are variables here: text in a script could be
# code of whoever wrote it.
set -euo pipefail

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

status=0
"$COMMAND" check "${paths[@]}" "${options[@]}" "${arguments[@]}" --output-format github \
    --report "sarif:$out/jaxsight.sarif" --report "markdown:$out/check.md" || status=$?
[ "$status" -ne 2 ] || exit 2 # the check itself failed, and has said why

cp "$out/check.md" "$out/report.md"
cat "$out/report.md" >>"$GITHUB_STEP_SUMMARY"
{
    echo "report=$out/report.md"
    echo "sarif=$out/jaxsight.sarif"
    echo "status=$status"
} >>"$GITHUB_OUTPUT"
