"""What the repository may not hold: ties to one machine, and files that are made again."""

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


def list_tracked(*options: str) -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", *options], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [line for line in listing.stdout.split("\0") if line]


def tracked_texts() -> dict[str, str]:
    return {
        file: (ROOT / file).read_bytes().decode("utf-8", errors="replace")
        for file in list_tracked()
        if (ROOT / file).is_file()
    }


def test_no_tracked_file_is_one_that_git_is_told_to_ignore() -> None:
    assert list_tracked("--cached", "--ignored", "--exclude-standard") == []


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
