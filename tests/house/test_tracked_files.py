"""What no file in the repository may name, since it would tie it to one machine."""

import re
import subprocess

from tests.house.source import ROOT

# Written in pieces, so that this file does not match itself.
REGISTRIES = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "yarn" + "pkg.com",
    "deb" + "ian.org",
    "deb" + "ian.net",
    "ubun" + "tu.com",
]
MACHINE_FOLDERS = ["wo" + "rk", "ro" + "ot", "tm" + "p"]
FORBIDDEN = re.compile(
    "|".join(
        [
            *(re.escape(host) for host in REGISTRIES),
            rf"(?<![\w./~:}}*-])/(?:{'|'.join(MACHINE_FOLDERS)})(?=/|\b(?![.-]))",
        ]
    )
)


def tracked_texts() -> dict[str, str]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [ROOT / line for line in listing.stdout.split("\0") if line]
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes().decode("utf-8", errors="replace")
        for path in paths
        if path.is_file()
    }


def test_no_tracked_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = [
        f"{file}:{number}: {match.group()}"
        for file, text in tracked_texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if (match := FORBIDDEN.search(line))
    ]
    assert found == []


def test_the_pattern_finds_hosts_and_folders_and_leaves_addresses_alone() -> None:
    folder = "/" + MACHINE_FOLDERS[0]
    assert FORBIDDEN.search("see https://" + REGISTRIES[0] + "/simple")
    assert FORBIDDEN.search(f"cd {folder}/main")
    assert FORBIDDEN.search(f'DATA = "{folder}"')
    assert not FORBIDDEN.search(f"https://example.com{folder}/main")
    assert not FORBIDDEN.search(f"docs{folder}s")
