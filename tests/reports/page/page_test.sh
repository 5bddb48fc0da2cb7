#!/bin/sh
# Opens pages of small runs in a headless Chromium: page_test.sh PROGRAM [FOLDER-FOR-SCREENSHOTS]
# Exit status 77, with a line that says so, where there is no browser or no node: nothing was checked then.
for program in "${ASSAY_CHROMIUM:-chromium}" chromium chromium-browser google-chrome; do
  browser=$(command -v "$program") && break
done
if [ -z "$browser" ] || ! command -v node >/dev/null; then
  echo "page_test: SKIPPED, the pages' scripts were not checked: this needs chromium and node (Debian: apt-get install chromium nodejs)"
  exit 77
fi
exec node "$(dirname "$0")/page_test.mjs" "$browser" "$@"
