"""Which rollout a call belongs to: what claims it, and which claim counts (ingest.md 3)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from urllib.parse import urlsplit

from ng_capture.files.names import LONGEST_ID, FileKind, is_rollout_id, parse_name
from ng_capture.ingest.raw import RolloutClaim
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import encode_json, object_in, printable

# with the longest ending of its files a name of 255 bytes
_LONGEST = 200
_ORDER = ("path", "file_name", "field", "header", "option")
_MUST_AGREE = ("path", "file_name", "field")
_FIELDS = ("_ng_rollout_id", "rollout_id")
_GYM_PATH = re.compile(r"/ng-rollout/([^/]+)/(?:training-token-capture/)?v1/")
_LIGHTNING_PATH = re.compile(r"/rollout/([^/]+)/attempt/([^/]+)/v1/")
_SESSION_PATH = re.compile(r"/sessions/([^/]+)/v1/")
_COOKBOOK_PATH = re.compile(r"/r/((?:[^/]+/[^/]+/)+)v1/")
_COOKBOOK_PREFIXES = {"run": "", "attempt": "attempt", "split": "", "iter": "iter", "group": "group", "traj": "traj"}


def resolve_rollout(claims: Iterable[RolloutClaim]) -> str | Defect:
    """The rollout of a call: the strongest claim counts.

    Refused are: path, file name and field that differ, unless the command names one of their answers
    (`rollout_id_mismatch`); an id that must not become a file name, and no claim at all (`bad_rollout_id`).
    `-a<n>` makes another rollout, as any other difference does.
    """
    ordered = strongest_first(claims)
    if not ordered:
        return Defect(reason="bad_rollout_id", detail="nothing names the rollout")
    first = ordered[0]
    others = [each for each in ordered if each.source in _MUST_AGREE and each.rollout_id != first.rollout_id]
    if others and first.source in _MUST_AGREE:
        chosen = [each for each in ordered if each.source == "option"]
        if not chosen or chosen[0].rollout_id not in (first.rollout_id, *(each.rollout_id for each in others)):
            return Defect(
                reason="rollout_id_mismatch",
                expected=first.rollout_id,
                found=others[0].rollout_id,
                detail=f"the {_spoken(first)} and the {_spoken(others[0])} differ",
            )
        first = chosen[0]
    if not is_rollout_id(first.rollout_id) or len(first.rollout_id) > _LONGEST:
        return Defect(reason="bad_rollout_id", found=first.rollout_id, detail=f"from the {_spoken(first)}")
    if len(first.rollout_id) > LONGEST_ID:
        return Defect(reason="bad_rollout_id", found=first.rollout_id, detail=f"longer than {LONGEST_ID} characters")
    return first.rollout_id


def strongest_first(claims: Iterable[RolloutClaim]) -> tuple[RolloutClaim, ...]:
    """The claims in the order in which they count."""
    return tuple(sorted(claims, key=lambda claim: _ORDER.index(claim.source)))


def file_name_claims(file_name: str) -> Sequence[RolloutClaim]:
    """The rollout that a capture file is named after."""
    name = parse_name(file_name)
    known = name is not None and name.kind in (FileKind.CAPTURE, FileKind.TOKENS)
    return [RolloutClaim("file_name", name.rollout_id)] if name is not None and known else []


def path_claims(url: str) -> Sequence[RolloutClaim]:
    """The rollout that stands in the path of a URL, however the harness puts it there; not decoded."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return []
    if found := _GYM_PATH.search(path):
        return [RolloutClaim("path", found[1])]
    if found := _LIGHTNING_PATH.search(path):
        return [RolloutClaim("path", of_attempt(found[1], found[2]))]
    if found := _SESSION_PATH.search(path):
        return [RolloutClaim("path", found[1])]
    if found := _COOKBOOK_PATH.search(path):
        parts = found[1].rstrip("/").split("/")
        scope = {key: value for place, (key, value) in enumerate(pairwise(parts)) if place % 2 == 0}
        return [RolloutClaim("path", each) for each in _cookbook(scope)]
    return []


def field_claims(*carriers: object) -> Sequence[RolloutClaim]:
    """The rollouts that objects name in a field of their own, or in their `metadata`."""
    places = [place for carrier in carriers for place in (object_in(carrier), _metadata(carrier))]
    return [RolloutClaim("field", told) for place in places for key in _FIELDS for told in named(place.get(key))]


def option_claims(value: object, path: str | None) -> Sequence[RolloutClaim]:
    """The rollout that a field names which the user chose: keys and places in lists with dots between."""
    if path is None:
        return []
    for part in path.split("."):
        if isinstance(value, list) and part.isascii() and part.isdigit() and len(part) < 10:
            value = next(iter(value[int(part) :]), None)
        else:
            value = object_in(value).get(part)
    return [RolloutClaim("option", told) for told in named(value)]


def header_claims(headers: Mapping[str, str]) -> Sequence[RolloutClaim]:
    """The rollout that the strongest header names; the keys are in lower case."""
    if "x-nemo-gym-rollout-id" in headers:
        return [RolloutClaim("header", headers["x-nemo-gym-rollout-id"])]
    if "x-rollout-id" in headers:
        return [RolloutClaim("header", of_attempt(headers["x-rollout-id"], headers.get("x-attempt-id")))]
    weaker = [headers[key] for key in ("x-trajectory-id", "x-session-id") if key in headers]
    return [RolloutClaim("header", each) for each in weaker[:1]]


def of_attempt(rollout_id: str, attempt: object) -> str:
    """The id of one attempt at a rollout: NeMo Gym's `-a<n>` for a number, else both ids with a dot between."""
    text = str(attempt) if isinstance(attempt, int | str) else ""
    if text.isascii() and text.isdigit():
        return f"{rollout_id}-a{int(text)}" if text.strip("0") and len(text) < 10 else rollout_id
    return f"{rollout_id}.{text}" if text else rollout_id


def cookbook_claims(scope: Mapping[str, object]) -> Sequence[RolloutClaim]:
    """The rollout of a tinker-cookbook scope, as the path of its proxy would spell it."""
    keys = {
        "run": "run_id",
        "attempt": "run_attempt",
        "split": "split",
        "iter": "iteration",
        "group": "group_idx",
        "traj": "traj_idx",
    }
    return [RolloutClaim("field", each) for each in _cookbook({key: scope.get(name) for key, name in keys.items()})]


def named(value: object) -> Sequence[str]:
    """An id as text, none for null; what is no text and no number is spelled out, and refused later."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [printable(value)]
    return [str(value) if isinstance(value, int) and abs(value) < 10**19 else encode_json(repr(value)[:80]).decode()]


def _cookbook(scope: Mapping[str, object]) -> Sequence[str]:
    """Run, attempt, split, iteration, group and trajectory with dots between; attempt 0 is no other rollout."""
    parts = [
        f"{prefix}{told}"
        for key, prefix in _COOKBOOK_PREFIXES.items()
        for told in named(scope.get(key))
        if key != "attempt" or told != "0"
    ]
    return [".".join(parts)] if parts else []


def _metadata(carrier: object) -> Mapping[str, object]:
    return object_in(object_in(carrier).get("metadata"))


def _spoken(claim: RolloutClaim) -> str:
    return claim.source.replace("_", " ")
