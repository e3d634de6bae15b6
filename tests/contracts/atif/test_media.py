"""Images, sounds and other parts: carried where they can be, else a placeholder says what it was (3.4, 5)."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.dialects.media import data_url
from ng_capture.contracts.episode import Agent, Content, Episode, Media, Opaque, Role, Text, Thread, Turn
from ng_capture.contracts.interface import Options, SideFile, Written
from tests.support.atif import Doc, codes, put, read_one, with_steps, write_one
from tests.support.atif import user_step as user

DATA = b"\x89PNG"
DIGEST = hashlib.sha256(DATA).hexdigest()
INLINE = data_url("image/png", base64.b64encode(DATA).decode())


def written(content: Content, **options: Any) -> tuple[list[Doc], Written]:
    """The parts of a message, and what became of it."""
    told = Episode("chat", Thread((Turn(Role.USER, content),), agent=Agent("a", "1")))
    value, outcome = write_one(told, **options)
    return value["steps"][0]["message"], outcome


def back(content: Content, **options: Any) -> Content | None:
    told = Episode("chat", Thread((Turn(Role.USER, content),), agent=Agent("a", "1")))
    return read_document(write_one(told, **options)[0]).main.turns[0].content


def test_a_text_and_parts_of_text_are_never_exchanged() -> None:
    told = Episode("chat", Thread((Turn(Role.USER, (Text("a"),)), Turn(Role.USER, "a")), agent=Agent("a", "1")))
    value, _ = write_one(told)
    assert [step["message"] for step in value["steps"]] == [[{"type": "text", "text": "a"}], "a"]


@pytest.mark.parametrize(
    ("image", "media_type"),
    [
        (Media("image", "https://example.test/a.png"), "image/png"),
        (Media("image", "https://example.test/a.jpg?size=1"), "image/jpeg"),
        (Media("image", "https://example.test/a", "IMAGE/WEBP"), "image/webp"),
        (Media("image", "a.gif", "image/gif"), "image/gif"),
        (Media("image", "a", "image/jpg"), "image/jpeg"),
    ],
)
def test_an_image_elsewhere_is_a_part_with_its_address(image: Media, media_type: str) -> None:
    (part,), outcome = written((image,))
    assert part == {"type": "image", "source": {"media_type": media_type, "path": image.source}}
    assert outcome.losses == () and outcome.files == ()


@pytest.mark.parametrize(
    "image", [Media("image", "https://example.test/a"), Media("image", "a.bmp"), Media("image", "b", "image/tiff")]
)
def test_an_image_of_unknown_type_leaves_its_address_and_comes_back(image: Media) -> None:
    (part,), outcome = written((image,))
    assert part == {"type": "text", "text": f"[image omitted: {image.source}]"}
    assert codes(outcome) == ["media_type_unknown"]
    assert back((image,)) == (image,)


def test_an_image_in_the_request_leaves_its_digest_without_a_folder_to_put_it() -> None:
    (part, text), outcome = written((Media("image", INLINE), Text("look")))
    assert part == {"type": "text", "text": f"[image omitted: image/png, sha256 {DIGEST}]"}
    assert text == {"type": "text", "text": "look"}
    assert [(loss.code, loss.path) for loss in outcome.losses] == [("media_omitted", "/steps/0/message/0")]


def test_an_image_in_the_request_becomes_a_file_once() -> None:
    parts, outcome = written((Media("image", INLINE), Media("image", INLINE, "image/png")), media_dir=Path("media"))
    name = f"media/{DIGEST[:24]}.png"
    assert parts == [{"type": "image", "source": {"media_type": "image/png", "path": name}}] * 2
    assert outcome.files == (SideFile(name, DATA),) and outcome.losses == ()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("data:image/png;base64,%%%", "media_omitted"),
        ("data:image/png;base64,ab\u00e9", "media_omitted"),
        ("data:image/png,plain", "media_type_unknown"),
        ("data:image/bmp;base64,aGk=", "media_type_unknown"),
    ],
)
def test_data_that_cannot_be_read_is_told_and_leaves_a_digest(source: str, code: str) -> None:
    (part,), outcome = written((Media("image", source),), media_dir=Path("media"))
    assert part["text"].startswith("[image omitted: ") and "sha256" in part["text"]
    assert codes(outcome) == [code] and outcome.files == ()


def test_a_sound_makes_the_document_v1_8() -> None:
    sound = Media("audio", "a.mp3", "audio/MP3", 1.5)
    told = Episode("chat", Thread((Turn(Role.USER, (sound,)),), agent=Agent("a", "1")))
    value, outcome = write_one(told)
    assert value["schema_version"] == "ATIF-v1.8" and outcome.losses == ()
    (part,) = value["steps"][0]["message"]
    assert part == {"type": "audio", "source": {"media_type": "audio/mpeg", "path": "a.mp3", "duration_sec": 1.5}}
    value, outcome = write_one(told, atif_version="1.7")
    assert value["schema_version"] == "ATIF-v1.7" and codes(outcome) == ["media_omitted"]
    assert read_document(value).main.turns[0].content == (sound,)


def test_a_sound_in_the_request_becomes_a_file_or_a_digest() -> None:
    sound = Media("audio", data_url("audio/wav", base64.b64encode(DATA).decode()))
    (part,), outcome = written((sound,), media_dir=Path("m"))
    assert part["source"]["path"] == f"m/{DIGEST[:24]}.wav" and len(outcome.files) == 1
    (part,), outcome = written((sound,))
    assert part["type"] == "text" and codes(outcome) == ["media_omitted"]


@pytest.mark.parametrize("sound", [Media("audio", "a.mid", "audio/midi"), Media("audio", "a")])
def test_a_sound_of_unknown_type_is_a_placeholder_that_comes_back(sound: Media) -> None:
    _, outcome = written((sound,))
    assert codes(outcome) == ["media_type_unknown"] and back((sound,)) == (sound,)


@pytest.mark.parametrize("part", [Opaque("input_file", {"type": "input_file", "id": 1}), Media("video", "a.mp4")])
def test_a_part_of_another_kind_is_a_placeholder_that_comes_back(part: Opaque | Media) -> None:
    (told,), outcome = written((part,))
    assert told["text"].startswith(f"[{part.kind} omitted") and codes(outcome) == ["content_type_unsupported"]
    assert back((part,)) == (part,)


def test_a_placeholder_that_somebody_edited_is_the_text_that_it_is() -> None:
    told = Episode("chat", Thread((Turn(Role.USER, (Media("video", "a.mp4"),)),)))
    value = put(write_one(told)[0], "/steps/0/message/0/text", "a video")
    assert read_document(value).main.turns[0].content == (Text("a video"),)


# images beside a document that is read


def shown(path: str) -> Doc:
    return with_steps(user([{"type": "image", "source": {"media_type": "image/png", "path": path}}]))


def test_an_image_beside_the_document_is_carried_along_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(DATA)
    told = read_one(tmp_path, shown("images/a.png"), Options(inline_media=True))
    assert told.main.turns[0].content == (Media("image", INLINE, "image/png"),)
    assert read_one(tmp_path, shown("images/a.png")).main.turns[0].content == (
        Media("image", "images/a.png", "image/png"),
    )
    value, _ = write_one(told)
    assert value["steps"][0]["message"][0]["source"]["path"] == INLINE
    value, outcome = write_one(told, media_dir=Path("m"))
    assert outcome.files == (SideFile(f"m/{DIGEST[:24]}.png", DATA),)


@pytest.mark.parametrize("path", ["../secret.png", "https://example.test/a.png", "none.png", "link.png"])
def test_no_document_has_a_file_of_another_folder_put_into_the_output(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    told = read_one(folder, shown(path), Options(inline_media=True))
    assert told.main.turns[0].content == (Media("image", path, "image/png"),)
    told = read_one(folder, shown(str(tmp_path / "secret.png")), Options(inline_media=True))
    assert write_one(told, media_dir=Path("m"))[1].files == ()
