"""The published shapes of everything that is read and written, as JSON Schemas.

Only `ng-capture schema` and tests import them: the line path has its own typed records, and a test holds every line
that the commands print against these models.
"""

from typing import Any

from pydantic import BaseModel

from ng_capture.outputs.shapes.captured import FinishedRow, RawCallLine, StoreStateFile, TokenLine
from ng_capture.outputs.shapes.conversed import PreferencePair, RowOfMessages
from ng_capture.outputs.shapes.converted import LossReportFile, ValidationDocument
from ng_capture.outputs.shapes.health import HealthFile
from ng_capture.outputs.shapes.ingested import IngestDocument, IngestedRolloutShape
from ng_capture.outputs.shapes.shown import (
    ExplainedDirectory,
    ExplainedRollout,
    ExplainedTemplate,
    MessageShape,
    ShownCall,
    ShownList,
    ShownRolloutTree,
    TokenSpanShape,
)
from ng_capture.outputs.shapes.stepped import AttachedCalls, RolloutStepsShape, StepsDocument
from ng_capture.outputs.shapes.written import RebuiltRow, ReceiptFile, RolloutVerdict, RowOfChain, VerifyDocument

SHAPES: dict[str, type[BaseModel]] = {
    "token-entry": TokenLine,
    "store-state": StoreStateFile,
    "model-call": RawCallLine,
    "finished-row": FinishedRow,
    "ingested-rollout": IngestedRolloutShape,
    "ingest-document": IngestDocument,
    "verdict": RolloutVerdict,
    "verify-document": VerifyDocument,
    "health-document": HealthFile,
    "explained-rollout": ExplainedRollout,
    "explained-directory": ExplainedDirectory,
    "explained-template": ExplainedTemplate,
    "shown-list": ShownList,
    "shown-rollout": ShownRolloutTree,
    "shown-call": ShownCall,
    "shown-message": MessageShape,
    "shown-tokens": TokenSpanShape,
    "rollout-steps": RolloutStepsShape,
    "steps-document": StepsDocument,
    "attached-calls": AttachedCalls,
    "rebuilt-row": RebuiltRow,
    "training-row": RowOfChain,
    "messages-row": RowOfMessages,
    "preference-pair": PreferencePair,
    "receipt": ReceiptFile,
    "loss-report": LossReportFile,
    "validation-document": ValidationDocument,
}
"""Model by the name of its schema."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one shape; KeyError for an unknown name."""
    schema = SHAPES[name].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"ng-capture/{name}", **schema}
