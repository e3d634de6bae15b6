"""Whatever writers, kills, restores and clocks do: no undelivered byte is lost, nothing delivered stays for ever."""

import json
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ng_capture.retention.asking import DAY
from ng_capture.retention.halfway import half_moved, half_moved_of
from ng_capture.retention.receipts import read_coverage
from ng_capture.retention.restore import purge, restore
from ng_capture.retention.trash import MANIFEST, TRASH, TrashedRollout, TrashPlan
from ng_capture.store.seal import seal
from tests.support.dying import dies_at
from tests.support.forge import Forge
from tests.support.gym_writer import GymWriter, Refused
from tests.support.retention import TWO_WEEKS, Disk, in_the_past

GRACE = 7 * DAY
IDS = st.sampled_from(["r-0", "r-1", "r-2"])
STATE = "tokens.state.json"
MTIME = re.compile(rb'("mtime_ns":)(-?[0-9]+)')
# whatever is not this is payload
STAYS = (".lock", STATE)
Files = dict[str, bytes]
# what is synced in memory costs nothing: here processes die, the power does not
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Retention(RuleBasedStateMachine):
    """A capture directory and what is known of it from the outside.

    `owed` are the lines that a writer was told are durable, by rollout, until the reference deletes their attempt;
    `outputs` the payload of rollouts as durable outputs hold them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="ng-machine-", dir=MEMORY))
        self.disk = Disk(self.root)
        self.attempts: dict[str, Forge] = {}
        self.owed: dict[str, set[bytes]] = {}
        self.covered: set[bytes] = set()
        self.outputs: dict[str, list[Files]] = {}
        self.numbers = iter(range(10_000))

    def teardown(self) -> None:
        try:
            self.nothing_is_kept_for_ever()
        finally:
            shutil.rmtree(self.root)

    @initialize(old=st.booleans())
    def begin(self, old: bool) -> None:
        for rollout_id in ("r-0", "r-1"):
            self.write(rollout_id)
        if old:
            self.deliver(sealing=False)
            self.time_passes(30)

    # the writer

    @rule(rollout_id=IDS)
    def write(self, rollout_id: str) -> None:
        """The next call of the attempt; refused where the rollout is frozen or retired, then nothing is written."""
        forge = self.attempts.setdefault(rollout_id, Forge(rollout_id))
        call_id = f"c{next(self.numbers)}"
        last = forge.calls[-1] if forge.calls else None
        call = last.then([4], [5], id=call_id) if last else forge.root([1, 2], [3], id=call_id)
        in_the_past(forge)
        before, closed = self.payload(rollout_id), self.state(rollout_id)
        writer = GymWriter(self.disk.capture, rollout_id)
        try:
            writer.begin_call(call_id)
            writer.append(call_id, call.line())
        except Refused:
            forge.calls.pop()
            assert closed.get("frozen") and self.payload(rollout_id) == before
        else:
            assert not closed.get("retired")
            self.owed.setdefault(rollout_id, set()).add(call.line())

    @rule(rollout_id=IDS)
    def begin_a_call_that_is_lost(self, rollout_id: str) -> None:
        try:
            GymWriter(self.disk.capture, rollout_id).begin_call(f"lost{next(self.numbers)}")
        except Refused:
            assert self.state(rollout_id).get("frozen")

    @rule(rollout_id=IDS)
    def mark_incomplete(self, rollout_id: str) -> None:
        try:
            GymWriter(self.disk.capture, rollout_id).mark_incomplete("lost")
        except Refused:
            assert self.state(rollout_id).get("retired")

    @rule(rollout_id=IDS)
    def begin_a_new_attempt(self, rollout_id: str) -> None:
        """The reference deletes what lies in the directory; what lies in the trash stays there."""
        GymWriter(self.disk.capture, rollout_id).delete()
        self.attempts[rollout_id] = Forge(rollout_id)
        self.owed[rollout_id] = self.owed.get(rollout_id, set()) & self.lying(rollout_id)
        self.write(rollout_id)

    @rule(rollout_id=IDS)
    def freeze(self, rollout_id: str) -> None:
        if rollout_id in self.disk.listing():
            seal(self.disk.listing().get(rollout_id))

    # the delivery

    @rule(sealing=st.booleans())
    def deliver(self, sealing: bool) -> None:
        coverage = read_coverage([self.disk.deliver(f"out-{next(self.numbers)}.jsonl", sealing=sealing)])
        for rollout_id in coverage.rollouts:
            payload = self.payload(rollout_id)
            self.outputs.setdefault(rollout_id, []).append(payload)
            self.covered.update(payload[f"{rollout_id}.tokens.jsonl"].splitlines())

    @rule(sealing=st.booleans())
    def a_run_ends(self, sealing: bool) -> None:
        """All of it is delivered, and nobody looks at it for a month."""
        self.deliver(sealing)
        self.time_passes(30)

    # the cleaner

    def clean(self) -> None:
        cleaning = self.disk.cleaning(older_than=TWO_WEEKS)
        for done in cleaning.carry_out(cleaning.plan()):
            assert not done.failed, done
        cleaning.purge_trash(GRACE)

    @rule(ripe=st.booleans())
    def gc(self, ripe: bool) -> None:
        """`ripe`: a month after all was delivered."""
        if ripe:
            self.a_run_ends(sealing=False)
        self.clean()

    @rule(rollout_id=IDS, ripe=st.booleans())
    def gc_beside_a_writer(self, rollout_id: str, ripe: bool) -> None:
        """The writer comes between the plan and the lock."""
        if ripe:
            self.a_run_ends(sealing=False)
        cleaning = self.disk.cleaning(older_than=TWO_WEEKS)
        planned = list(cleaning.plan())
        self.write(rollout_id)
        assert not [done for done in cleaning.carry_out(planned) if done.failed]

    @rule(number=st.integers(0, 36), ripe=st.booleans())
    def gc_that_is_killed(self, number: int, ripe: bool) -> None:
        if ripe:
            self.a_run_ends(sealing=False)
        dies_at(number, self.clean)

    def lying_entry(self, rollout_id: str) -> tuple[TrashPlan, TrashedRollout] | None:
        """As `trash restore` looks for it: the last plan that names it."""
        found = [(plan, each) for plan in self.disk.plans for each in plan.rollouts() if each.rollout_id == rollout_id]
        return found[-1] if found else None

    @rule(rollout_id=IDS)
    def restore(self, rollout_id: str) -> None:
        found, owed = self.lying_entry(rollout_id), self.lines(rollout_id)
        if found is not None:
            done = restore(*found, patience=0.0)
            if done.problem is None:
                assert not self.state(rollout_id).get("retired")
                names = {file.name for file in found[1].files}
                assert names <= set(self.payload(rollout_id))
            else:
                assert self.lines(rollout_id) == owed

    @rule(rollout_id=IDS, number=st.integers(0, 10))
    def restore_that_is_killed(self, rollout_id: str, number: int) -> None:
        found = self.lying_entry(rollout_id)
        if found is not None:
            dies_at(number, lambda: restore(*found, patience=0.0))

    @rule(number=st.integers(0, 10))
    def purge_the_oldest_plan(self, number: int) -> None:
        plans = [plan for plan in self.disk.plans if not any(half_moved_of(plan))]
        dies_at(number, lambda: [purge(plan) for plan in plans[:1]])

    # the clock

    @rule(days=st.sampled_from([1, 6, 8, 15, 30]))
    def time_passes(self, days: int) -> None:
        """All that happened happened so much earlier: the times of all files, and those that manifests tell of them."""
        passed = int(days * DAY) * 10**9
        for path in self.disk.capture.rglob("*"):
            if path.is_file():
                then = path.stat().st_mtime_ns - passed
                if path.name == MANIFEST:
                    path.write_bytes(
                        MTIME.sub(lambda told: b"%s%d" % (told[1], int(told[2]) - passed), path.read_bytes())
                    )
                os.utime(path, ns=(then, then))

    @rule(rollout_id=IDS, days=st.sampled_from([1, 400]))
    def a_clock_is_wrong(self, rollout_id: str, days: int) -> None:
        """Of the machine that wrote last; what a killed run left half moved was written before."""
        path = self.disk.path(f"{rollout_id}.tokens.jsonl")
        if (
            path.exists()
            and path.stat().st_mtime <= time.time()
            and rollout_id not in half_moved(str(self.disk.capture))
        ):
            later = path.stat().st_mtime_ns + int(days * DAY) * 10**9
            os.utime(path, ns=(later, later))

    # what is seen from outside

    def state(self, rollout_id: str) -> dict[str, object]:
        path = self.disk.path(f"{rollout_id}.{STATE}")
        return dict(json.loads(path.read_bytes())) if path.exists() else {}

    def payload(self, rollout_id: str) -> Files:
        names = [name for name in self.disk.names(rollout_id) if not name.endswith(STAYS)]
        return {name: self.disk.path(name).read_bytes() for name in names}

    def lines(self, rollout_id: str) -> list[bytes]:
        return self.payload(rollout_id).get(f"{rollout_id}.tokens.jsonl", b"").splitlines()

    def lying(self, rollout_id: str) -> set[bytes]:
        """The lines of a rollout in the trash."""
        found = (self.disk.capture / TRASH).glob(f"*/{rollout_id}.tokens.jsonl")
        return {line for path in found for line in path.read_bytes().splitlines()}

    @invariant()
    def no_undelivered_line_is_lost(self) -> None:
        for rollout_id, owed in self.owed.items():
            lost = owed - set(self.lines(rollout_id)) - self.lying(rollout_id) - self.covered
            assert not lost, f"{rollout_id}: {len(lost)} lines are nowhere"

    @invariant()
    def only_what_is_delivered_lies_in_the_trash(self) -> None:
        for rollout_id in self.attempts:
            assert self.lying(rollout_id) <= self.covered, f"{rollout_id}: an undelivered line was trashed"

    @invariant()
    def no_line_is_in_two_places(self) -> None:
        for rollout_id in self.owed:
            twice = set(self.lines(rollout_id)) & self.lying(rollout_id)
            assert not twice, f"{rollout_id}: {len(twice)} lines lie in the directory and in the trash"

    def nothing_is_kept_for_ever(self) -> None:
        """When the clocks are right again and enough time has passed, one run takes all that is delivered."""
        self.time_passes(500)
        owed = {name: self.payload(name) for name in self.owed if not self.state(name).get("incomplete")}
        delivered = {name for name, payload in owed.items() if payload and payload in self.outputs.get(name, [])}
        self.clean()
        kept = {name for name in delivered if self.payload(name)}
        kept |= {name for name in self.owed if self.state(name).get("retired") and self.payload(name)}
        assert not kept, f"kept for ever: {kept}"
        self.no_undelivered_line_is_lost()


THOROUGH = os.environ.get("CI") == "true"

TestRetention = Retention.TestCase
TestRetention.settings = settings(
    max_examples=200 if THOROUGH else 30,
    stateful_step_count=50 if THOROUGH else 30,
    deadline=None,
    # the same runs each time: what is found here is found again there
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    # what is found is told at once: making it smaller takes minutes
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
