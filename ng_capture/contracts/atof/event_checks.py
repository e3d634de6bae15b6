"""Every rule on one event that it breaks (contracts.md 2.1)."""

from collections.abc import Iterator, Mapping

from ng_capture.contracts.atof.moments import moment_of
from ng_capture.contracts.atof.rules import fault
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.records.json_text import object_in, told

DRAFT_KINDS = frozenset({"ScopeStart", "ScopeEnd", "Mark", "StreamHeaderEvent"})
_CATEGORIES = frozenset(
    {
        *("agent", "function", "llm", "tool", "context", "custom", "unknown"),
        *("retriever", "embedder", "reranker", "guardrail", "evaluator"),
    }
)
_ATTRIBUTES = frozenset({"parallel", "relocatable", "remote", "stateful", "streaming"})
_TEXTS, _OBJECTS = ("uuid", "name"), ("data_schema", "metadata", "category_profile")


def version_known(value: Mapping[str, object]) -> bool:
    """True for the versions 0.N, and where none is told."""
    version = value.get("atof_version", "0.1")
    return isinstance(version, str) and version.startswith("0.") and version[2:].isdecimal() and version.isascii()


def on_event(value: Mapping[str, object]) -> Iterator[Fault]:
    """All faults of one event; what a draft of before 0.1 holds is not looked at."""
    kind = value.get("kind")
    if isinstance(kind, str) and kind in DRAFT_KINDS:
        yield fault("atof.draft", f"{kind} is of the draft before ATOF 0.1", "/kind")
        return
    yield from _missing(value, kind)
    yield from _shared(value)
    if kind == "scope":
        yield from _of_scope(value)
    elif kind == "mark":
        for key in ("scope_category", "attributes"):
            if key in value:
                yield fault("atof.mark.scope_fields", f"a mark has no {key}", pointer(key))
    elif "kind" in value:
        yield fault("atof.kind", f"{told(kind)} is neither scope nor mark", "/kind")


def _missing(value: Mapping[str, object], kind: object) -> Iterator[Fault]:
    needed = ["kind", "atof_version", "uuid", "timestamp", "name"]
    if kind == "scope":
        needed += ["scope_category", "category"]
    for key in needed:
        if key not in value:
            yield fault("atof.field.missing", f"{key} is missing", pointer(key))


def _shared(value: Mapping[str, object]) -> Iterator[Fault]:
    for key in _TEXTS:
        if key in value and (not isinstance(value[key], str) or (key == "uuid" and not value[key])):
            yield _type(key, value[key], "text")
    for key in ("parent_uuid", "category"):
        if value.get(key) is not None and (not isinstance(value[key], str) or not value[key]):
            yield _type(key, value[key], "text or null")
    for key in _OBJECTS:
        if value.get(key) is not None and not isinstance(value[key], dict):
            yield _type(key, value[key], "an object or null")
    for key in ("name", "version"):
        schema = value.get("data_schema")
        if isinstance(schema, dict) and not isinstance(schema.get(key), str):
            yield fault("atof.field.type", f"{key} of a data_schema is text", pointer("data_schema", key))
    if "atof_version" in value and not version_known(value):
        yield fault("atof.version", f'{told(value["atof_version"])} is not "0.N"', "/atof_version")
    yield from _of_time(value)
    yield from _of_category(value)


def _of_time(value: Mapping[str, object]) -> Iterator[Fault]:
    if "timestamp" not in value:
        return
    moment = moment_of(value["timestamp"])
    if moment is None:
        message = f"{told(value['timestamp'])} is neither RFC 3339 text nor microseconds since 1970"
        yield fault("atof.timestamp.invalid", message, "/timestamp")
    elif moment.naive:
        yield fault("atof.timestamp.naive", f"{moment.spelled} names no zone", "/timestamp")


def _of_category(value: Mapping[str, object]) -> Iterator[Fault]:
    category, profile = value.get("category"), object_in(value.get("category_profile"))
    if not isinstance(category, str) or not category:
        return
    if category not in _CATEGORIES:
        yield fault("atof.category.unknown", f"{told(category)} is no category that ATOF knows", "/category")
    for key in ("model_name", "tool_call_id"):
        if profile.get(key) is not None and not isinstance(profile[key], str):
            yield fault("atof.field.type", f"{key} is text", pointer("category_profile", key))
    if category == "custom" and (not isinstance(profile.get("subtype"), str) or not profile["subtype"]):
        yield fault("atof.category.subtype", "a custom category has no subtype", "/category_profile/subtype")
    if category == "tool" and value.get("kind") == "scope" and not profile.get("tool_call_id"):
        yield fault("atof.profile.tool_call_id", "a tool names no call", "/category_profile/tool_call_id")


def _of_scope(value: Mapping[str, object]) -> Iterator[Fault]:
    if "scope_category" in value and value["scope_category"] not in ("start", "end"):
        message = f"{told(value['scope_category'])} is neither start nor end"
        yield fault("atof.scope_category", message, "/scope_category")
    if "category" in value and value["category"] is None:
        yield _type("category", None, "text")
    attributes = value.get("attributes", [])
    if not isinstance(attributes, list) or not all(isinstance(each, str) for each in attributes):
        yield _type("attributes", attributes, "a list of texts")
        return
    if attributes != sorted(set(attributes)):
        yield fault("atof.attributes.order", "attributes are not sorted, or stand twice", "/attributes")
    for at, each in enumerate(attributes):
        if each not in _ATTRIBUTES and "." not in each:
            yield fault("atof.attributes.unknown", f"{told(each)} is no attribute", pointer("attributes", at))


def _type(key: str, value: object, wanted: str) -> Fault:
    return fault("atof.field.type", f"{key} is {wanted}, not {type(value).__name__}", pointer(key))
