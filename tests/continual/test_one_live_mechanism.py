"""0.1.0 resumed each of many texts of one mechanism, and let an analyst save what is launched."""

import contextlib
import gc
import json
import os
import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

PURE = dp.max_divergence()


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def counter(scale=50.0, **options):
    return oc.m.make_counter(*bits(), PURE, scale, **options)


def launch(saved=None, measurement=None):
    checkpoint = oc.c.Checkpoint(saved)
    return oc.c.make_resumable(measurement or counter(), checkpoint)([]), checkpoint


def test_noise_is_not_averaged_out_over_many_texts():
    handle, checkpoint = launch()
    handle.update_all([1] * 100)
    texts = [checkpoint.save(go_on=True) for _ in range(40)]
    resumed = []
    for text in texts:
        with pytest.raises(InvalidValueError, match="still runs in this process"):
            resumed.append(launch(text))
    assert resumed == []
    newest = checkpoint.save()
    after, _ = launch(newest)
    for text in [*texts, newest]:
        with pytest.raises(InvalidValueError, match="still runs in this process"):
            launch(text)
    del after, _
    gc.collect()
    for text in [*texts, newest]:
        with pytest.raises(
            InvalidValueError, match="only the newest state can be resumed, and only once"
        ):
            launch(text)


def test_of_many_texts_without_the_original_one_is_resumed():
    handle, checkpoint = launch()
    handle.update_all([1] * 100)
    texts = [checkpoint.save(go_on=True) for _ in range(20)]
    del handle, checkpoint
    gc.collect()
    answers = []
    for text in texts:
        try:
            answers.append(launch(text)[0](None))
        except InvalidValueError:
            continue
    assert len(answers) <= 1
    gc.collect()
    for text in texts[:-1]:
        with pytest.raises(InvalidValueError, match="only the newest state"):
            launch(text)


def test_a_copy_of_a_copy_is_of_the_same_mechanism():
    handle, checkpoint = launch()
    texts = [checkpoint.save(go_on=True)]
    for _ in range(5):
        del handle
        handle, checkpoint = launch(checkpoint.save())
        handle.update(1)
        texts.append(checkpoint.save(go_on=True))
    ids = {json.loads(text)["lineage"] for text in texts}
    generations = [json.loads(text)["generation"] for text in texts]
    assert len(ids) == 1
    assert generations == sorted(set(generations))
    del handle, checkpoint
    gc.collect()
    for text in texts[:-1]:
        with pytest.raises(InvalidValueError, match="only the newest state"):
            launch(text)
    launch(texts[-1])


MESSAGES = {
    "query": lambda handle: handle(None),
    "update": lambda handle: handle.update(1),
    "updates": lambda handle: handle.update_all([1]),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_state_from_which_the_mechanism_went_on_is_refused(message):
    """What it answered after the text was saved would be answered again, with other noise."""
    handle, checkpoint = launch()
    text = checkpoint.save(go_on=True)
    MESSAGES[message](handle)
    del handle, checkpoint
    gc.collect()
    with pytest.raises(InvalidValueError, match="after it was saved"):
        launch(text)


def test_save_and_go_on_then_crash_then_resume():
    """The use of go_on: each answer is saved before it is seen, and the process ends."""
    handle, checkpoint = launch()
    handle.update_all([1] * 9)
    answer, text = handle(None), checkpoint.save(go_on=True)
    del handle, checkpoint
    gc.collect()
    again, _ = launch(text)
    assert again(None) == answer


def test_of_eight_threads_one_resumes():
    _, checkpoint = launch()
    text, handles, refused = checkpoint.save(), [], []
    begin = threading.Barrier(8)

    def work():
        begin.wait(timeout=10)
        try:
            handles.append(launch(text))
        except InvalidValueError:
            refused.append(True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert (len(handles), len(refused)) == (1, 7)


def test_eight_threads_launch_with_one_checkpoint():
    checkpoint, handles = oc.c.Checkpoint(), []
    measurement = oc.c.make_resumable(counter(), checkpoint)

    def work():
        with contextlib.suppress(InvalidValueError):
            handles.append(measurement([]))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(handles) == 1


def test_a_refused_resume_uses_nothing_up():
    handle, checkpoint = launch()
    handle.update(1)
    answer, text = handle(None), checkpoint.save()
    with pytest.raises(InvalidValueError, match="cannot be resumed by"):
        launch(text, counter(scale=51.0))
    record = json.loads(text)
    record["parts"][0][1]["machine"] = "nonsense"
    with pytest.raises(InvalidValueError, match="^saved must be what"):
        launch(json.dumps(record))
    again, _ = launch(text)
    assert again(None) == answer


def test_a_halted_mechanism_is_not_alive():
    handle, checkpoint = launch()
    text = checkpoint.save(go_on=True)
    with pytest.raises(oc.errors.StreamHaltedError):
        handle.update(7)
    with pytest.raises(InvalidValueError, match="after it was saved"):
        launch(text)
    again, _ = launch(checkpoint.save())
    with pytest.raises(oc.errors.StreamHaltedError):
        again(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_knows_what_it_inherited():
    handle, checkpoint = launch()
    text = checkpoint.save(go_on=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            launch(text)
            os.write(writing, b"resumed")
        except InvalidValueError:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"refused"
    assert isinstance(handle(None), int)


# --- a checkpoint is the owner's -------------------------------------------------------------


def hosts():
    odometer = oc.make_concurrent_odometer(*bits(), PURE)
    limit = oc.make_concurrent_filter(odometer, 1, 10.0)
    compositor = oc.make_concurrent_composition(*bits(), PURE, 1, [1.0, 1.0])
    return {
        "shared filter": lambda: oc.c.make_concurrent_continual(limit)([]),
        "shared compositor": lambda: oc.c.make_concurrent_continual(compositor)([]),
        "shared odometer": lambda: oc.c.make_concurrent_continual(odometer)([]),
        "filter": lambda: limit([]),
        "compositor": lambda: compositor([]),
        "odometer": lambda: odometer([]),
        "interactive": lambda: oc.c.make_interactive(oc.c.make_concurrent_continual(limit))([]),
        "child odometer": lambda: limit([])(odometer),
    }


HOSTS = [
    "shared filter",
    "shared compositor",
    "shared odometer",
    "filter",
    "compositor",
    "odometer",
    "interactive",
    "child odometer",
]
HIDE = {
    "plain": lambda one: one,
    "cast": lambda one: oc.c.cast(one, PURE),
}


@pytest.mark.parametrize("hide", HIDE)
@pytest.mark.parametrize("host", HOSTS)
def test_an_analysts_checkpoint_is_refused_and_nothing_is_charged(host, hide):
    root = hosts()[host]()
    checkpoint = oc.c.Checkpoint()
    measurement = HIDE[hide](oc.c.make_resumable(counter(), checkpoint))
    with pytest.raises(InvalidTypeError, match="its checkpoint can read the data"):
        root(measurement)
    if hasattr(root, "privacy_loss"):
        assert root.privacy_loss(1) == 0.0
    with pytest.raises(InvalidValueError, match="no mechanism was launched"):
        checkpoint.save()


def test_nor_under_opendps_own_compositor():
    checkpoint = oc.c.Checkpoint()
    root = dp.c.make_adaptive_composition(*bits(), PURE, 1, [1.0])([])
    with pytest.raises(Exception, match="its checkpoint can read the data"):
        root(oc.c.make_resumable(counter(), checkpoint))
    with pytest.raises(InvalidValueError, match="no mechanism was launched"):
        checkpoint.save()
