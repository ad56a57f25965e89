#!/bin/sh
# Print the path of the Python that .venv is made from: the one named as $1 if it is not empty, else the first on
# PATH that is 3.11 or newer. A Python inside a virtual environment stands for the one it was made from, so that
# an activated .venv never becomes its own base.

ask='import sys; print("%d.%d" % sys.version_info[:2], getattr(sys, "_base_executable", sys.executable))
sys.exit(sys.version_info < (3, 11))'

chosen="${1:-}"
if [ -n "$chosen" ]; then
    set -- "$chosen"
else
    set -- python3 python3.11 python3.12 python3.13 python3.14
fi

too_old=""
for candidate; do
    if answer=$("$candidate" -c "$ask" 2>/dev/null); then
        printf '%s\n' "${answer#* }"
        exit 0
    fi
    [ -z "$answer" ] || too_old="$too_old${too_old:+, }$candidate is ${answer%% *}"
done

if [ -n "$chosen" ]; then
    problem="PYTHON=$chosen is not a Python 3.11 or newer"
    remedy="name one that is, as in 'make PYTHON=python3.12'"
else
    problem="no Python 3.11 or newer is on PATH"
    remedy="install one, or name it as in 'make PYTHON=/path/to/python3.12'"
fi
printf 'Error: %s%s: %s.\n' "$problem" "${too_old:+ ($too_old)}" "$remedy" >&2
exit 1
