"""What is written is accepted by the models that others publish; Harbor's needs an environment of its own (README)."""

import pytest
from hypothesis import given, settings

from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.episode import Episode
from tests.support.atif import Doc, documents, write_one
from tests.support.atif_full import full_document
from tests.support.episodes import episodes

MODELS = {"atif": "atif", "nat.atif": "nvidia-nat-atif", "harbor.models.trajectories": "harbor"}
small = settings(max_examples=30)


@pytest.fixture(params=MODELS, ids=MODELS.get, scope="module")
def peer(request: pytest.FixtureRequest) -> type:
    """The model of a trajectory in one of their packages."""
    module = pytest.importorskip(request.param, reason=f"{MODELS[request.param]} is not installed")
    if not hasattr(module, "Trajectory"):
        pytest.skip(f"{request.param} is another package")
    return module.Trajectory


@small
@given(episodes())
def test_the_document_of_any_episode_is_accepted(peer: type, episode: Episode) -> None:
    document, _ = write_one(episode, atif_version="1.7")
    peer.model_validate(document)


@small
@given(documents())
def test_a_document_that_is_valid_here_is_valid_there(peer: type, value: Doc) -> None:
    peer.model_validate(value)


@pytest.mark.parametrize("version", range(9))
def test_a_document_of_every_version_is_accepted_as_v1_7(peer: type, version: int) -> None:
    document, _ = write_one(read_document(full_document(version)), atif_version="1.7")
    peer.model_validate(document)
