"""What `convert --loss-report` and `validate --json` write (contracts.md 3.6, 7.3)."""

from typing import Literal

from pydantic import Field

from ng_capture.outputs.shapes.written import Written


class FaultShape(Written):
    """A place in a document that breaks a rule."""

    rule: str
    severity: Literal["error", "warning", "info"]
    message: str
    path: str = Field("", description="JSON pointer; empty for the document as a whole.")
    line: int | None = Field(None, description="From 1, for documents of one object a line.")
    step: int | None = Field(None, description="Number of the step, turn or event.")


class LossShape(Written):
    """Something that a conversion could not keep."""

    code: str
    severity: Literal["note", "degraded", "dropped", "synthesised"]
    path: str = Field(description="JSON pointer into the source or the output: where it first happened.")
    count: int
    detail: str | None = None


class ConvertedDocument(Written):
    """What became of one document."""

    source: str
    place: str = Field(description="Where it stands in the source; empty where it is all of it.")
    contract: str = Field(description="What it was read as.")
    output: str | None = Field(description="The file that holds it; null where it was refused.")
    losses: list[LossShape]
    faults: list[FaultShape]


class LossReportFile(Written):
    """Every loss of a conversion."""

    schema_name: Literal["ng-capture.losses/1"] = Field(alias="schema")
    to: str
    profile: Literal["native", "harbor", "strict"]
    losses: dict[str, int] = Field(description="How often each code, over all documents.")
    documents: list[ConvertedDocument]


class ValidatedDocument(Written):
    """A document and its faults."""

    source: str
    contract: str
    valid: bool = Field(description="False where one of the faults is an error.")
    faults: list[FaultShape]


class ValidationDocument(Written):
    """All documents that were checked."""

    schema_name: Literal["ng-capture.validation/1"] = Field(alias="schema")
    documents: list[ValidatedDocument]
