#!/usr/bin/env bash
# Build wheel and sdist into dist/, and use each in an empty environment, away from the sources.
#
#   scripts/check_release.sh            PYTHON=python3.13 scripts/check_release.sh
#
# On a tagged commit, tag, version and changelog must agree. docs/release.md has the whole recipe.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$PWD
python=${PYTHON:-python3}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --upgrade pip build twine
rm -rf dist
"$work/tools/bin/python" -m build --outdir dist . >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/tools/bin/python" -m twine check --strict dist/*

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' nsightpy/__init__.py)
tag=$(git describe --exact-match --tags --match 'v*' 2>/dev/null || true)
if [ -n "$tag" ]; then
  [ "$tag" = "v$version" ] || { echo "the tag is $tag, the version is $version" >&2; exit 1; }
  grep -qE "^## $version \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" CHANGELOG.md ||
    { echo "CHANGELOG.md has no dated section for $version" >&2; exit 1; }
fi

wheel=dist/nsightpy-$version-py3-none-any.whl
sdist=dist/nsightpy-$version.tar.gz
unexpected=$("$python" -m zipfile -l "$wheel" | awk 'NR > 1 { print $1 }' |
  grep -vE "^nsightpy(-$version\.dist-info)?/" || true)
[ -z "$unexpected" ] || { echo "the wheel holds $unexpected" >&2; exit 1; }

for distribution in "$wheel" "$sdist"; do
  rm -rf "$work/empty" "$work/elsewhere"
  mkdir "$work/elsewhere"
  "$python" -m venv "$work/empty"
  "$work/empty/bin/python" -m pip install --quiet "$sources/$distribution"
  "$work/empty/bin/python" -m pip check >/dev/null
  (
    cd "$work/elsewhere"
    unset PYTHONPATH
    PATH="$work/empty/bin:$PATH"
    [ "$(nsightpy --version)" = "nsightpy $version" ]
    nsightpy summarize "$sources/sample_reports/training_4rank" | grep -q "Where the device time went"
    nsightpy timeline -q "$sources/sample_reports/single_process.sqlite" -o timeline.html
    nsightpy timeline -q "$sources/sample_reports/single_process.sqlite" -o timeline.png
    nsightpy roofline -q "$sources/sample_reports/kernels_h100.ncu.csv" --format csv >roofline.csv
    [ -s timeline.html ] && [ -s timeline.png ] && [ -s roofline.csv ]
    python -c '
import pathlib, nsightpy
here = pathlib.Path(nsightpy.__file__).parent
assert (here / "py.typed").exists()
assert "site-packages" in str(here), here
'
  )
  echo "$distribution works"
done
