"""Contents: texts and parts to what is said, and back; what has no place leaves a placeholder (contracts.md 3.4, 5)."""

import base64
import binascii
import hashlib
import mimetypes
from pathlib import Path
from urllib.parse import urlsplit

from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.notes import PartNote
from ng_capture.contracts.atif.schema import AUDIO_TYPES, IMAGE_TYPES, audio_type
from ng_capture.contracts.dialects.media import data_url, parse_data_url
from ng_capture.contracts.episode import Content, Json, Media, Opaque, Part, Text
from ng_capture.contracts.interface import SideFile
from ng_capture.contracts.sources import Source, read_beside
from ng_capture.records.json_text import object_in

_SUFFIXES = {"image/jpeg": ".jpg", "audio/mpeg": ".mp3", "audio/mp4": ".m4a"}
_NAME = 24


def read_content(value: object, notes: tuple[PartNote, ...], images: Source | None) -> Content | None:
    """A content of a document without errors; images beside `images`, if it is given, become data URLs."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else None
    parts = [_read_part(object_in(part), images) for part in value]
    for note in notes:
        held = _noted(note)
        if 0 <= note.index < len(parts) and parts[note.index] == Text(placeholder(held)):
            parts[note.index] = held
    return tuple(parts)


def _read_part(part: Json, images: Source | None) -> Part:
    if part.get("type") == "text":
        return Text(str(part.get("text")))
    source = object_in(part.get("source"))
    media_type, path = str(source.get("media_type")), str(source.get("path"))
    if part.get("type") == "audio":
        duration = source.get("duration_sec")
        return Media("audio", path, audio_type(media_type), duration if isinstance(duration, int | float) else None)
    beside = None if images is None else images.beside(path)
    if beside is not None and images is not None and images.path is not None and _is_inside(beside, images.path.parent):
        path = data_url(media_type, base64.b64encode(read_beside(beside)).decode())
    return Media("image", path, media_type)


def _is_inside(path: Path, folder: Path) -> bool:
    """True for a file of the document's own folder: no document may have a secret put into the output."""
    return path.resolve().is_relative_to(folder.resolve())


def write_content(content: Content, draft: Draft, path: str) -> tuple[object, tuple[PartNote, ...]]:
    """A content as a message or a result has it, and notes on its placeholders."""
    if isinstance(content, str):
        return content, ()
    members, notes = list[object](), list[PartNote]()
    for index, part in enumerate(content):
        member = _write_part(part, draft, f"{path}/{index}")
        if member is None:
            member = {"type": "text", "text": placeholder(part)}
            notes += _note(index, part)
        members.append(member)
    return members, tuple(notes)


def placeholder(part: Part) -> str:
    """What stands where a part has no place."""
    if not isinstance(part, Media):
        return f"[{part.kind} omitted]" if isinstance(part, Opaque) else part.text
    if not part.source.startswith("data:"):
        return f"[{part.kind} omitted: {part.source}]"
    data = _data(part.source)
    digest = hashlib.sha256(part.source.encode("utf-8", "surrogatepass") if data is None else data).hexdigest()
    return f"[{part.kind} omitted: {_media_type(part) or 'unknown type'}, sha256 {digest}]"


def _write_part(part: Part, draft: Draft, path: str) -> dict[str, object] | None:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Media(kind="image"):
            return _image(part, draft, path)
        case Media(kind="audio"):
            return _sound(part, draft, path)
    draft.lose("content_type_unsupported", path, part.kind)
    return None


def _image(part: Media, draft: Draft, path: str) -> dict[str, object] | None:
    media_type = _media_type(part)
    media_type = "image/jpeg" if media_type == "image/jpg" else media_type
    if media_type not in IMAGE_TYPES:
        draft.lose("media_type_unknown", path, media_type)
        return None
    source = _placed(part, media_type, draft, path)
    return None if source is None else {"type": "image", "source": {"media_type": media_type, "path": source}}


def _sound(part: Media, draft: Draft, path: str) -> dict[str, object] | None:
    media_type = audio_type(_media_type(part) or "")
    if media_type not in AUDIO_TYPES:
        draft.lose("media_type_unknown", path, media_type)
        return None
    if not draft.takes_sounds:
        if not draft.was_without_sounds:
            draft.lose("media_omitted", path, "a sound, which ATIF has since v1.8")
        return None
    source = _placed(part, media_type, draft, path)
    if source is None:
        return None
    draft.has_sounds = True
    told = {} if part.duration is None else {"duration_sec": part.duration}
    return {"type": "audio", "source": {"media_type": media_type, "path": source, **told}}


def _media_type(part: Media) -> str | None:
    if part.media_type:
        return part.media_type.strip().lower()
    parsed = parse_data_url(part.source)
    if parsed is not None:
        return parsed.media_type.lower()
    return None if part.source.startswith("data:") else mimetypes.guess_type(urlsplit(part.source).path)[0]


def _placed(part: Media, media_type: str, draft: Draft, path: str) -> str | None:
    """Where the image or sound is to be found: at its address, or in a file beside the document."""
    if not part.source.startswith("data:") or (draft.same and draft.options.media_dir is None):
        return part.source
    data, folder = _data(part.source), draft.options.media_dir
    if data is None or folder is None:
        draft.lose("media_omitted", path, "no data that can be read" if data is None else "no --media-dir")
        return None
    suffix = _SUFFIXES.get(media_type, f".{media_type.partition('/')[2]}")
    name = f"{folder.as_posix()}/{hashlib.sha256(data).hexdigest()[:_NAME]}{suffix}"
    draft.files[name] = SideFile(name, data)
    return name


def _data(source: str) -> bytes | None:
    parsed = parse_data_url(source)
    try:
        return None if parsed is None else base64.b64decode(parsed.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _note(index: int, part: Part) -> list[PartNote]:
    """What a placeholder stands for, but for the data of a data URL."""
    if isinstance(part, Opaque):
        return [PartNote(index, part.kind, value=dict(part.value))]
    if isinstance(part, Media) and not part.source.startswith("data:"):
        return [PartNote(index, part.kind, part.source, part.media_type, part.duration)]
    return []


def _noted(note: PartNote) -> Part:
    if note.source is not None:
        return Media(note.kind, note.source, note.media_type, note.duration)
    return Opaque(note.kind, note.value or {})
