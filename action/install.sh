#!/usr/bin/env bash
# Installs this version of jaxsight in an environment of its own, unless there is a command already.
set -euo pipefail

if [ -z "$COMMAND" ]; then
    folder=$TEMP_FOLDER/jaxsight-environment
    # `-I`: the working folder is a checkout, whose modules would be imported.
    python3 -I -m venv "$folder"
    "$folder/bin/python" -I -m pip install --quiet --disable-pip-version-check "$ACTION"
    COMMAND=$folder/bin/jaxsight
fi
"$COMMAND" --version
echo "command=$COMMAND" >>"$GITHUB_OUTPUT"
