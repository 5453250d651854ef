#!/usr/bin/env bash
# Runs once, as root, when Gradescope builds the image.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends bubblewrap ca-certificates curl
curl -LsSf https://astral.sh/uv/install.sh | env UV_UNMANAGED_INSTALL=/usr/local/bin sh
export UV_PYTHON_INSTALL_DIR=/opt/python
uv venv --python {python} /autograder/venv
uv pip install --python /autograder/venv/bin/python -r /autograder/source/requirements.txt
chmod 600 /autograder/source/rules.json
# the user that runs submissions reads Python, and nothing else here
chmod -R go+rX /opt/python /autograder/venv /autograder/source/package/amptutorial
