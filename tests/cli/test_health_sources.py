"""`ng-capture health` of rebuilt files, receipts and saved verdicts: the health of the captures they come from."""

import functools
import gzip
import json
import operator
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars
import pytest

from ng_capture.verdicts.metrics import Metrics as GymMetrics
from tests.support.command import COMMAND, Run, run, strict_json
from tests.support.fixtures import ROOT
from tests.support.forge import Forge, in_lines, write_rows
from tests.support.runs import Metrics, document, healthy, metrics, words_of, write_lost, write_many, write_retired

CAPTURE, ROWS = ROOT / "capture", ROOT / "rollouts.jsonl"
FINISHED = ("--rollouts", ROWS)
RECEIPT = ".receipt.json"
# what needs a clock: a file that was made once cannot tell it
CLOCK = ("running", "abandoned")
# how the captures are judged, what else is asked of the rebuild, where it writes
REBUILT = {
    "rollouts": ((), (), "out.jsonl"),
    "finished rows": (FINISHED, (), "out.jsonl"),
    "every chain": ((*FINISHED, "--policy", "all"), (), "out.jsonl"),
    "masked rows dropped": (FINISHED, ("--masked", "drop"), "out.jsonl"),
    "training rows": (FINISHED, ("--to", "rows"), "out.jsonl"),
    "a table": (FINISHED, ("--to", "rows"), "out.parquet"),
    "a table of every chain": (("--policy", "all"), ("--to", "rows"), "out.parquet"),
}


def rebuilt(folder: Path, name: str, *options: object, store: Path = CAPTURE) -> Path:
    done = run("rebuild", store, *options, "-o", folder / name)
    assert done.code == 0, done.err
    return folder / name


def saved(folder: Path, form: str, *options: object, store: Path = CAPTURE) -> Path:
    path = folder / f"verdicts.{form}"
    assert run("verify", store, *options, "-f", form, "-o", path).code in (0, 1)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What comes of the fixtures and their finished rows: `out.jsonl` with its receipt, `verdicts.jsonl`."""
    folder = tmp_path_factory.mktemp("made")
    rebuilt(folder, "out.jsonl", *FINISHED)
    saved(folder, "jsonl", *FINISHED)
    return folder


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """A copy of the rebuilt rollouts, the receipt beside it."""
    for name in ("out.jsonl", f"out.jsonl{RECEIPT}"):
        shutil.copy(made / name, tmp_path / name)
    return tmp_path / "out.jsonl"


@pytest.fixture
def verdicts(made: Path, tmp_path: Path) -> Path:
    """A copy of the saved verdicts."""
    return Path(shutil.copy(made / "verdicts.jsonl", tmp_path))


@functools.cache
def looked_at(*judging: object) -> Metrics:
    """The health of the fixtures' captures themselves, but for what needs a clock."""
    return timeless(metrics(CAPTURE, *judging))


def timeless(told: Mapping[str, Any]) -> Metrics:
    """Without what needs a clock."""
    return {name: value for name, value in told.items() if name not in CLOCK}


def mixed(directory: Path) -> Path:
    """A run with what the fixtures lack: raw calls that failed, another model, a tombstone, no calls at all."""
    forge = Forge("0-0")
    first = forge.root([1, 2], [3, 3], id="a")
    first.then([4], [5], id="b").retry([6], id="c")
    forge.root([7], [8], id="s", model="judge")
    forge.write(directory)
    failed = {"model_call_id": "x", "status_code": 429, "response": {}, "latency_ms": 3.5}
    lines = [json.dumps(call.raw()).encode() for call in forge.calls]
    lines += [lines[0], b'{"cut', json.dumps(first.raw(**failed)).encode()]
    (directory / "0-0.capture.jsonl").write_bytes(in_lines(lines))
    healthy("0-1").write(directory, raw=True)
    write_lost(directory, "0-2")
    write_retired(directory, "0-3")
    (directory / "0-4.tokens.jsonl").write_bytes(b"")
    return directory


# Rebuilt files, told by their receipts


@pytest.mark.parametrize("case", REBUILT)
def test_a_rebuilt_file_is_as_healthy_as_the_captures_it_was_made_of(tmp_path: Path, case: str) -> None:
    judging, options, name = REBUILT[case]
    told = metrics(rebuilt(tmp_path, name, *judging, *options))
    assert timeless(told) == looked_at(*judging)
    assert [told[name] for name in CLOCK] == [None, None]


@pytest.mark.parametrize("to", ["rollouts", "rows"])
def test_nothing_of_a_run_gets_lost_in_a_receipt(tmp_path: Path, to: str) -> None:
    store = mixed(tmp_path / "store")
    out = rebuilt(tmp_path, "out.jsonl", "--to", to, store=store)
    told, looked = document(out), document(store)
    assert timeless(told["metrics"]) == timeless(looked["metrics"])
    known = ("tokens_in", "error_categories", "latency_ms", "models", "damaged_lines", "sampling", "retired")
    assert all(told["metrics"][name] for name in known)
    assert (told["checks"], told["failed_checks"]) == (looked["checks"], looked["failed_checks"])
    assert told["notices"] == [notice for notice in looked["notices"] if notice["metric"] not in CLOCK]
    assert told["examples"] == timeless(looked["examples"])


def test_a_receipt_alone_tells_the_same(out: Path) -> None:
    out.unlink()
    assert timeless(metrics(f"{out}{RECEIPT}")) == looked_at(*FINISHED)


def test_a_breakdown_and_gates_hold_on_a_rebuilt_file_too(tmp_path: Path) -> None:
    store = mixed(tmp_path / "store")
    out = rebuilt(tmp_path, "out.jsonl", store=store)
    options = ("--by", "model", "--max", "reasons.capture_incomplete=0", "--expect-rollouts", "7")
    told, looked = document(out, *options), document(store, *options)
    assert told["failed_checks"] == looked["failed_checks"] == ["missing_captures", "reasons.capture_incomplete"]
    parts, wanted = (
        {part["key"]: timeless(part["metrics"]) for part in each["breakdown"]["parts"]} for each in (told, looked)
    )
    assert parts == wanted and parts.keys() == {"judge + policy-8b", "policy-8b", None}


def test_a_receipt_that_no_longer_fits_its_output_is_not_used(out: Path) -> None:
    lines = out.read_bytes().splitlines(True)
    out.write_bytes(b"".join(lines[:-1]))
    done = run("health", out, "-f", "json")
    told = strict_json(done.out)["metrics"]
    assert (told["rollouts"], told["generated_tokens_trained"]) == (len(lines) - 1, None)
    assert f"{out}: no receipt that fits: what the rows do not say is unknown" in done.err


@pytest.mark.parametrize("text", [b"", b"{}", b"not JSON", b'{"schema":"ng-capture.receipt/1","rollouts":[\n'])
def test_a_damaged_receipt_is_not_used(out: Path, text: bytes) -> None:
    Path(f"{out}{RECEIPT}").write_bytes(text)
    assert metrics(out)["generated_tokens_trained"] is None


def test_a_receipt_that_is_cut_is_wrong_use(out: Path) -> None:
    receipt = Path(f"{out}{RECEIPT}")
    lines = receipt.read_bytes().splitlines(True)
    receipt.write_bytes(b"".join(lines[:-1]))
    done = run("health", receipt)
    assert (done.code, done.out) == (2, "") and f"{receipt}: the document is cut" in done.err


# Rebuilt rollouts without their receipt


@pytest.mark.parametrize("options", [(), FINISHED, (*FINISHED, "--policy", "all")])
def test_without_a_receipt_the_rows_tell_what_nemo_gym_counts(tmp_path: Path, options: tuple[object, ...]) -> None:
    out = rebuilt(tmp_path, "out.jsonl", *options)
    Path(f"{out}{RECEIPT}").unlink()
    told, looked = metrics(out), looked_at(*options)
    of_gym = {"rollouts", "trainable", "masked", "mask_fraction", "retired", "delivered_fraction_mean"}
    of_gym |= set(GymMetrics.__struct_fields__)
    assert {name: told[name] for name in of_gym} == {name: looked[name] for name in of_gym}
    unknown = ("generated_tokens_trained", "lost_by_reason", "findings", "models", "calls", "tokens_in", *CLOCK)
    assert [told[name] for name in unknown] == [None] * len(unknown)


def test_without_a_receipt_reasons_are_those_that_the_rows_prove(out: Path) -> None:
    Path(f"{out}{RECEIPT}").unlink()
    told, looked = metrics(out), looked_at(*FINISHED)
    assert told["reasons"] == {"capture_incomplete": 1, "prefix_mismatch": 1, "terminal_chain_broken": 1}
    assert told["reasons"].items() <= looked["reasons"].items()
    assert (told["unexplained"], looked["unexplained"]) == (2, 0)
    assert "not told 2 retried-answer" in words_of(run("health", out).out)


def gym_row(told: Mapping[str, Any], *, masked: bool = True) -> Mapping[str, Any]:
    """A finished row as NeMo Gym delivers it."""
    row = {"_ng_rollout_id": "0-0", "response": {"output": []}, "_ng_token_capture": told}
    return {**row, "mask_sample": True} if masked else row


def built(status: str = "", reason: str = "no_response_object", **told: Any) -> Mapping[str, Any]:
    """What NeMo Gym counts of a rollout that it could build."""
    terminal = {"method": "none", "call_id": None, "reason": reason, "chain": status}
    counts = {"n_calls": 3, "chains": 1, "roots": 1, "quarantined_calls": 0, "unresolved_parent_calls": 0}
    return {**counts, "terminal_attribution": terminal, "parent_link_failures": {}, **told}


GYM_ROWS = [
    ({"n_calls": 0, "error": "capture contains no token records"}, ["empty_capture"]),
    ({"n_calls": 0, "error": "nothing recorded"}, ["empty_capture"]),
    ({"n_calls": 2, "error": "capture produced no trainable generated tokens"}, ["no_generated_tokens"]),
    ({"n_calls": 2, "error": "prefix_mismatch: call b leaves its parent a"}, ["prefix_mismatch"]),
    ({"n_calls": 0, "error": "JSONDecodeError: unexpected end of data"}, None),
    ({"n_calls": 0}, None),
    (built(), None),
    (built(capture_incomplete=True), ["capture_incomplete"]),
    (built("delivered", capture_incomplete=True, chains=3, roots=2), ["capture_incomplete"]),
    (built(chains=2, roots=2), ["multiple_roots"]),
    (built(chains=2), ["multiple_ends"]),
    (built("broken", "", chains=2, roots=2), ["terminal_chain_broken"]),
    (built("not_captured", "explicit_terminal_not_captured"), ["terminal_not_captured"]),
    (built("", "declared_terminal_not_captured;x"), ["terminal_not_captured"]),
    (built("", "declared_ambiguous"), ["terminal_ambiguous"]),
    (built("not_captured", "witness_disagreement"), ["terminal_not_captured", "witness_disagreement"]),
    *(
        (built("broken", "", parent_link_failures={name: 1}), sorted([reason, "terminal_chain_broken"]))
        for name, reason in {
            "parent_unresolved": "parent_unresolved",
            "missing_resolution": "link_missing",
            "parent_digest_mismatch": "prefix_mismatch",
            "parent_call_id_missing": "parent_missing",
            "parent_call_id_missing_recovered": "parent_missing",
            "duplicate_call_id_conflict": "conflicting_records",
            "delta_chain_unreconstructable": "delta_unresolvable",
        }.items()
    ),
    # a call that lost its parent is no first call of its own
    (built(chains=2, roots=2, parent_link_failures={"parent_digest_mismatch": 1}), ["prefix_mismatch"]),
]


@pytest.fixture(scope="module")
def read_from_rows(tmp_path_factory: pytest.TempPathFactory) -> list[list[str] | None]:
    """The reasons of every one of these rows."""
    folder = tmp_path_factory.mktemp("rows")
    rows = [{**gym_row(told), "_ng_rollout_id": f"0-{number}"} for number, (told, _) in enumerate(GYM_ROWS)]
    write_rows(folder / "rows.jsonl", rows)
    done = run("health", folder / "rows.jsonl", "--parquet", folder / "t.parquet")
    assert done.code == 1, done.err
    reasons: list[list[str] | None] = polars.read_parquet(folder / "t.parquet")["reasons"].to_list()
    return reasons


@pytest.mark.parametrize("number", range(len(GYM_ROWS)))
def test_the_reason_of_a_row_of_nemo_gym_is_read_from_its_own_words(
    read_from_rows: list[list[str] | None], number: int
) -> None:
    told, reasons = read_from_rows[number], GYM_ROWS[number][1]
    assert (told if told is None else sorted(told)) == reasons


def test_a_row_of_nemo_gym_that_was_handed_off_is_retired(tmp_path: Path) -> None:
    error = "RuntimeError: Token capture for rollout 0-0 is retired"
    write_rows(tmp_path / "rows.jsonl", [gym_row({"n_calls": 0, "error": error})])
    told = metrics(tmp_path / "rows.jsonl")
    assert (told["retired"], told["masked"], told["trainable"]) == (1, 0, 0)


def test_a_row_that_brought_its_own_tokens_is_trainable(tmp_path: Path) -> None:
    own = {"_ng_rollout_id": "0-1", "response": {"output": [{"generation_token_ids": [1]}]}}
    write_rows(tmp_path / "rows.jsonl", [gym_row(built("delivered", "")), own])
    assert metrics(tmp_path / "rows.jsonl")["trainable"] == 1


# Saved verdicts


@pytest.mark.parametrize("form", ["jsonl", "json"])
@pytest.mark.parametrize("options", [(), FINISHED, ("--policy", "strict")])
def test_saved_verdicts_are_as_healthy_as_the_captures(tmp_path: Path, form: str, options: tuple[object, ...]) -> None:
    assert timeless(metrics(saved(tmp_path, form, *options))) == looked_at(*options)


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_nothing_of_a_run_gets_lost_in_saved_verdicts(tmp_path: Path, form: str) -> None:
    store = mixed(tmp_path / "store")
    assert timeless(metrics(saved(tmp_path, form, store=store))) == timeless(metrics(store))


def test_compressed_verdicts_are_read_as_they_are(verdicts: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(verdicts.read_bytes()))
    assert timeless(metrics(packed)) == looked_at(*FINISHED)
    packed.write_bytes(packed.read_bytes()[:-20])
    done = run("health", packed)
    assert done.code == 1 and f"{packed}:" in done.err and "the compressed file is cut or damaged" in done.err


def piped(data: bytes, *arguments: str) -> Run:
    done = subprocess.run([COMMAND, "health", *arguments], input=data, capture_output=True, check=False)
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_standard_input_is_read_where_a_dash_stands(verdicts: Path, out: Path) -> None:
    for path in (verdicts, Path(f"{out}{RECEIPT}")):
        told = strict_json(piped(path.read_bytes(), "-", "-f", "json").out)
        assert (timeless(told["metrics"]), told["paths"]) == (looked_at(*FINISHED), ["-"])
    rows = piped(out.read_bytes(), "-", "-f", "json")
    assert strict_json(rows.out)["metrics"]["n_calls"] == looked_at(*FINISHED)["n_calls"]
    assert piped(b"", "-").code == 1


def test_the_order_of_the_rollouts_changes_no_byte(tmp_path: Path) -> None:
    for number, temperature in enumerate((0.7, 0.2, 1.0)):
        forge = healthy(f"0-{number}")
        forge.write(tmp_path / "store")
        request = {"model": f"m{3 - number}", "temperature": temperature}
        calls = [json.dumps(call.raw(request=request)).encode() for call in forge.calls]
        (tmp_path / "store" / f"0-{number}.capture.jsonl").write_bytes(in_lines(calls))
    lines = saved(tmp_path, "jsonl", store=tmp_path / "store").read_bytes().splitlines()
    for form in ("json", "text"):
        one, two = (piped(in_lines(order), "-", "-f", form) for order in (lines, lines[::-1]))
        assert one.out == two.out and one.code == 0


def test_broken_lines_are_named_and_the_rest_counts(verdicts: Path) -> None:
    path, lines = verdicts, verdicts.read_bytes().splitlines(True)
    broken = [lines[0], b'{"cut\n', b"\n", b'{"rollout_id":7,"verdict":"masked"}\n', *lines[1:], b"\xff\n"]
    path.write_bytes(b"".join(broken))
    done = run("health", path, "-f", "json")
    assert done.code == 1
    assert f"{path}:2: no JSON object" in done.err and f"{path}:{len(broken)}: no JSON object" in done.err
    assert f"{path}:4: no verdict" in done.err
    assert strict_json(done.out)["metrics"]["rollouts"] == len(lines)


DEEP = "[" * 2000 + "]" * 2000


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("later", DEEP),
        ("accounting.captured", "1" + "0" * 400),
        ("accounting.lost.off_path", str(2**63)),
        ("metrics.n_calls", str(2**63)),
        ("measures.calls", "-1"),
        ("measures.models.policy-8b", "1" + "0" * 400),
        ("measures.raw.latencies", "[1e308]"),
        ("measures.raw.usage.tokens_in", "1" + "0" * 400),
        ("measures.raw.usage.tokens_out", "-1"),
    ],
)
@pytest.mark.parametrize("form", ["json", "prometheus"])
def test_a_verdict_with_what_no_rollout_has_is_named_and_the_rest_counts(
    verdicts: Path, place: str, value: str, form: str
) -> None:
    lines = [json.loads(line) for line in verdicts.read_bytes().splitlines()]
    odd = next(line for line in lines if line["rollout_id"] == "linear")
    *path, name = place.split(".")
    functools.reduce(operator.getitem, path, odd)[name] = "HERE"
    text = "".join(f"{json.dumps(line)}\n" for line in lines).replace('"HERE"', value)
    verdicts.write_text(text)
    done = run("health", verdicts, "-f", form, "--by", "model", "--csv", verdicts.parent / "out.csv")
    assert done.code == 1 and f"{verdicts}:{lines.index(odd) + 1}: no" in done.err
    assert len((verdicts.parent / "out.csv").read_text().splitlines()) == len(lines)


def test_a_sum_that_no_column_holds_is_an_empty_cell(verdicts: Path) -> None:
    line = next(each for each in verdicts.read_bytes().splitlines() if b'"linear"' in each)
    odd = json.loads(line)
    odd["accounting"]["lost"] = {"off_path": 2**63 - 1, "after_terminal": 1}
    verdicts.write_text(json.dumps(odd))
    done = run("health", verdicts, "-f", "json", "--csv", verdicts.parent / "out.csv")
    assert done.code == 0 and strict_json(done.out)["metrics"]["generated_tokens_lost"] == 2**63
    table = polars.read_csv(verdicts.parent / "out.csv")
    assert table["generated_tokens_lost"].to_list() == [None] and table["n_calls"].to_list() == [3]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_document_that_is_nested_without_end_is_wrong_use_or_a_broken_line(tmp_path: Path, form: str) -> None:
    path = saved(tmp_path, form)
    path.write_text(path.read_text().replace('"rollout_id":', f'"deep":{DEEP},"rollout_id":', 1))
    done = run("health", path)
    assert (done.code, "nested too deeply" in done.err) == ({"json": 2, "jsonl": 1}[form], form == "json")


def test_broken_rows_are_named_and_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    texts = [
        json.dumps(gym_row(built("delivered", ""), masked=False)),
        '{"x":',
        '{"_ng_token_capture":{}}',
        '{"_ng_rollout_id":"-x"}',
    ]
    path.write_text("".join(f"{text}\n" for text in texts))
    done = run("health", path)
    assert done.code == 1 and f"{path} 1 rollout 3 calls" in words_of(done.out)
    assert f"{path}:2: no JSON object" in done.err and f"{path}:3: no capture key" in done.err
    assert f"{path}:4: malformed rollout id" in done.err


def test_text_from_saved_verdicts_cannot_move_the_cursor(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202eevil"
    terminal = {"method": evil, "call_id": evil, "reason": evil, "chain": evil}
    verdict = {
        "rollout_id": evil,
        "verdict": "masked",
        "reasons": [evil],
        "findings": [{"reason": evil, "severity": "error", "message": evil}],
        "metrics": {"n_calls": 1, "terminal_attribution": terminal, "generated_tokens_captured": 1},
        "accounting": {"captured": 1, "trained": 0, "context": 0, "lost": {evil: 1}},
    }
    done = piped(in_lines([json.dumps(verdict).encode()]), "-", "--by", "task", "--max", "masked=0")
    assert done.code == 1 and not re.search("[\x1b\u202e]", done.out + done.err)


def test_include_and_exclude_choose_saved_rollouts_too(verdicts: Path) -> None:
    chosen = ("--include", "l*", "--exclude", "lost-*")
    told = timeless(metrics(verdicts, *chosen))
    assert told == looked_at(*FINISHED, *chosen) and told["rollouts"] == 2


# What cannot be told


def test_several_saved_files_are_one_run_and_a_rollout_in_two_is_wrong_use(tmp_path: Path) -> None:
    for name in ("one", "two"):
        healthy(name).write(tmp_path / name)
    one, two = (saved(tmp_path / name, "jsonl", store=tmp_path / name) for name in ("one", "two"))
    assert metrics(one, two)["rollouts"] == 2
    other = tmp_path / "other.jsonl"
    other.write_bytes(one.read_bytes())
    done = run("health", one, two, other)
    assert (done.code, done.out) == (2, "")
    assert f"rollout one is in two files: {one} and {other}" in done.err


def test_captures_and_saved_files_are_not_added_up(verdicts: Path) -> None:
    done = run("health", CAPTURE, verdicts)
    assert (done.code, done.out) == (2, "")
    assert f"{verdicts}: captures and files that were judged before cannot be added up" in done.err


@pytest.mark.parametrize(
    "options",
    [FINISHED, ("--policy", "all"), ("--policy-model", "x"), ("--infer-links",), ("--raw-only",), ("--watch", "1")],
)
def test_options_of_judging_are_not_for_what_was_judged_before(verdicts: Path, options: tuple[object, ...]) -> None:
    done = run("health", verdicts, *options)
    assert (done.code, done.out) == (2, "") and "was judged before" in done.err


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ({"tokens": [1], "loss_mask": [0]}, "training rows without their receipt", "verify -f jsonl"),
        ({"_ng_rollout_id": "0-0", "response": {"output": []}}, "no row has _ng_token_capture", "--rollouts"),
        ({"_ng_rollout_id": "0-0", "reward": 1.0}, "neither verdicts nor rebuilt rollouts", "verify -f jsonl"),
        ([1, 2], "neither verdicts nor rebuilt rollouts", "verify -f jsonl"),
        ("no JSON at all", "no JSON lines", "ng-capture health <capture directory>"),
    ],
)
def test_a_file_that_tells_no_health_is_wrong_use_with_a_hint(
    tmp_path: Path, line: object, message: str, hint: str
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(line if isinstance(line, str) else json.dumps(line) + "\n")
    done = run("health", path, "--csv", tmp_path / "out.csv")
    assert (done.code, done.out) == (2, "")
    assert f"{path}: {message}" in done.err and hint in done.err.partition("hint: ")[2]
    assert [each.name for each in tmp_path.iterdir()] == ["file.jsonl"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_training_rows_are_told_by_their_receipt_only(tmp_path: Path, name: str) -> None:
    path = rebuilt(tmp_path, name, "--to", "rows")
    Path(f"{path}{RECEIPT}").unlink()
    done = run("health", path)
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert done.err.splitlines()[1].startswith("hint: ng-capture ")


def test_an_output_never_replaces_what_is_read(verdicts: Path) -> None:
    before = verdicts.read_bytes()
    for option in ("-o", "--csv"):
        done = run("health", verdicts, option, verdicts)
        assert done.code == 2 and f"would replace the input {verdicts}" in done.err
    assert verdicts.read_bytes() == before


def test_a_run_of_which_nothing_is_trainable_fails_from_every_source(tmp_path: Path) -> None:
    store = write_many(tmp_path / "store", 0, 2)
    assert run("rebuild", store, "-o", tmp_path / "out.jsonl").code == 1
    for source in (store, saved(tmp_path, "jsonl", store=store), tmp_path / "out.jsonl"):
        assert document(source)["failed_checks"] == ["no_trainable_rollouts"]
