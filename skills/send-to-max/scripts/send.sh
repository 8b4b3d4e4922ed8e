#!/bin/sh
# Sends the text on standard input to max and ends with the exit code of `governor send`.
# Options are handed on: send.sh --reply-to ID < message.txt
set -u

cli=${GOVERNOR_CLI:-governor}
if ! command -v "$cli" >/dev/null 2>&1; then
    echo "send.sh: the governor command was not found; put it on PATH or name it in GOVERNOR_CLI" >&2
    exit 127
fi
if [ -t 0 ]; then
    echo "send.sh: give the text on standard input, for example: send.sh < message.txt" >&2
    exit 2
fi

# The recipient stands last, so that no option handed on can change it.
exec "$cli" send "$@" --to max -
