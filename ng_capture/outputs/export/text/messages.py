"""`--to messages`: one row per delivered chain, as SFT trainers take chat messages."""

from ng_capture.files.listing import RolloutFiles
from ng_capture.outputs.chunks import Chunk
from ng_capture.outputs.export.cutting import LeftOut, untrained_of
from ng_capture.outputs.export.fitting import fitting
from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.export.made import Made
from ng_capture.outputs.export.rewards import rewarded
from ng_capture.outputs.export.text.chain_text import ChainText, chain_texts
from ng_capture.outputs.rebuilding import Rebuild
from ng_capture.records.json_text import encode_json
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement


def make_messages(judgement: Judgement, row: RolloutRow | None, files: RolloutFiles | None, how: Rebuild) -> Made:
    """The rows of one rollout; raises TooLong and SurroundingsError."""
    flat, left_out = fitting(judgement, row, how)
    told, unspoken = list[tuple[FlatRow, ChainText]](), list[LeftOut]()
    for each, text in zip(flat, chain_texts(judgement, files, flat), strict=True):
        if isinstance(text, LeftOut):
            unspoken.append(text)
        else:
            told.append((each, text))
    rows = rewarded([each for each, _ in told], how.export, None)
    lines: list[list[Chunk]] = [[encode_json(_record(each, text))] for each, (_, text) in zip(rows, told, strict=True)]
    left = (*left_out, *unspoken)
    trained = sum(each.trained for each in rows)
    return Made(lines=lines, left_out=left, trained=trained, untrained=untrained_of(rows, left))


def _record(row: FlatRow, text: ChainText) -> Record:
    head = row.head
    return {
        "messages": text.weighted,
        "tools": text.tools,
        "rollout_id": head.rollout_id,
        "group_id": head.group_id,
        "reward": head.reward,
        "trajectory_index": head.trajectory_index,
        "n_trajectories": head.n_trajectories,
        "row_weight": head.row_weight,
        "call_id": head.calls[-1],
    }
